/// The arguments of `bundlefs ui MOUNTPOINT… [--port N] [--no-open]` and `bundlefs ui MAIN -o OPTIONS …`.
struct UIArguments: Equatable {
  /// What is shown.
  enum Subject: Equatable {
    case mounts([[UInt8]])
    /// A mount of MAIN that is made first, with lists of options.
    case ownMount(main: [UInt8], options: [[UInt8]])
  }

  let subject: Subject
  /// 0 for a free one.
  private(set) var port: UInt16 = 0
  private(set) var opensBrowser = true

  init(_ arguments: [[UInt8]]) throws(Failure) {
    var (operands, lists, rest) = ([[UInt8]](), [[UInt8]](), arguments[...])
    while let argument = rest.popFirst() {
      switch argument.shown {
      case "--no-open": opensBrowser = false
      case "--port":
        guard let port = rest.popFirst().flatMap({ UInt16($0.shown) }), port > 0 else {
          throw .usage("'--port' needs a number from 1 to 65535")
        }
        self.port = port
      case let option where option.hasPrefix("--"): throw .unknownOption(option, of: "ui")
      case let option where option.hasPrefix("-o"):
        guard let list = argument.count > 2 ? Array(argument.dropFirst(2)) : rest.popFirst() else {
          throw .usage("'-o' needs mount options after it")
        }
        lists.append(list)
      default: operands.append(argument)
      }
    }
    guard let first = operands.first else { throw .usage("'ui' needs at least one MOUNTPOINT") }
    if lists.isEmpty {
      subject = .mounts(operands)
      return
    }
    if operands.count > 1 {
      throw .usage("'ui' with '-o' mounts MAIN itself; leave out '\(operands[1].shown)'")
    }
    subject = .ownMount(main: first, options: lists)
    try Self.check(lists)
  }

  private static func check(_ lists: [[UInt8]]) throws(Failure) {
    var options = MountOptions()
    for list in lists { try options.read(list) }
    if options.isRemount { throw .usage("'ui' makes a new mount; 'remount' changes one") }
    try options.check()
  }
}
