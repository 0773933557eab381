/// The parsed arguments of `bundlefs run`; paths are not resolved yet.
struct RunArguments {
  var main: [UInt8] = []
  /// Where to mount; nil for MAIN.
  var mountPoint: [UInt8]?
  var options = MountOptions()
  /// The program and its arguments.
  var command: [[UInt8]] = []

  init(_ arguments: [[UInt8]]) throws(Failure) {
    let separator = arguments.firstIndex { $0.elementsEqual("--".utf8) }
    var rest = arguments[..<(separator ?? arguments.endIndex)]
    while let argument = rest.popFirst() { try read(argument, &rest) }
    guard let separator else { throw .usage("'run' needs '--' and a COMMAND after MAIN") }
    command = Array(arguments[(separator + 1)...])
    if main.isEmpty { throw .usage("'run' needs MAIN before '--'") }
    guard let program = command.first, !program.isEmpty else {
      throw .usage("'run' needs a COMMAND after '--'")
    }
    if options.isRemount { throw .usage("'run' makes a new mount; 'remount' changes one") }
    try options.check()
  }

  private mutating func read(_ argument: [UInt8], _ rest: inout ArraySlice<[UInt8]>) throws(Failure) {
    switch argument.shown {
    case "--at":
      guard let path = rest.popFirst(), !path.isEmpty else { throw .usage("'--at' needs a directory") }
      mountPoint = path
    case let word where word.hasPrefix("-o"):
      guard let list = argument.count > 2 ? Array(argument.dropFirst(2)) : rest.popFirst() else {
        throw .usage("'-o' needs mount options after it")
      }
      try options.read(list)
    case let word where word.hasPrefix("-") && argument.count > 1:
      throw .unknownOption(word, of: "run")
    case let word:
      if !main.isEmpty { throw .usage("unexpected argument '\(word)' after MAIN; write '--' before COMMAND") }
      main = argument
    }
  }
}
