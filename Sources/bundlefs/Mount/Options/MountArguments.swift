import Glibc
import RemoteFiles

/// The parsed arguments of a mount; paths are not resolved yet.
struct MountArguments {
  var main: [UInt8] = []
  var mountPoint: [UInt8] = []
  var options = MountOptions()
  var isForeground = false
  var isDebug = false
  var wantsHelp = false
  var wantsVersion = false
  /// Check only: mount(8) passes `-f` to its helpers.
  var isDryRun = false
  /// Whether mount(8) runs the program, as `mount.TYPE`.
  let isHelper: Bool
  /// The mount namespace to mount in (`mount -N`); nil for the caller's.
  var namespace: [UInt8]?

  /// Whether the mount is in a mount namespace of its own.
  var isPrivate = false
  /// Whether users other than the one that mounts may enter the mount.
  var isShared: Bool { isPrivate || options.passed.contains(Array("allow_other".utf8)) }

  /// Those of a private mount.
  init(private main: [UInt8], at mountPoint: [UInt8], options: MountOptions) {
    (self.main, self.mountPoint, self.options) = (main, mountPoint, options)
    (isPrivate, isHelper) = (true, false)
  }

  init(_ arguments: [[UInt8]]) throws(Failure) {
    // mount(8) runs `mount.TYPE` with flags of its own.
    isHelper = Self.programName(arguments).starts(with: "mount.".utf8)
    options.overlay.isProgram = Self.isOverlayProgram(arguments)
    var operands: [[UInt8]] = []
    var rest = arguments.dropFirst()
    while let argument = rest.popFirst() {
      if argument == Array("--".utf8) {
        operands += rest
        break
      } else if argument.starts(with: "--".utf8) {
        try readLong(argument.shown)
      } else if argument.first == UInt8(ascii: "-"), argument.count > 1 {
        try readFlags(argument.dropFirst(), &rest, isHelper: isHelper)
      } else {
        operands.append(argument)
      }
    }
    if wantsHelp || wantsVersion { return }
    let overlaid = try options.completeOverlay(isRoot: geteuid() == 0)
    try options.check()
    if let overlaid { operands = try overlayOperands(overlaid, operands) }
    try setOperands(operands)
  }

  /// Whether the program was run as `fuse-overlayfs`, which mounts whatever its first operand is.
  static func isOverlayProgram(_ arguments: [[UInt8]]) -> Bool {
    programName(arguments).elementsEqual("fuse-overlayfs".utf8)
  }

  private static func programName(_ arguments: [[UInt8]]) -> ArraySlice<UInt8> {
    arguments.first?.split(separator: UInt8(ascii: "/")).last ?? []
  }

  /// MAIN and the operands after it, where an option names the layers. mount(8) passes a source that means nothing.
  private func overlayOperands(_ main: [UInt8], _ operands: [[UInt8]]) throws(Failure) -> [[UInt8]] {
    let points = isHelper ? operands.dropFirst() : operands[...]
    if points.isEmpty { throw .usage("MOUNTPOINT is missing") }
    if points.count > 1 {
      throw .usage("unexpected argument '\(operands[1].shown)' after MOUNTPOINT; 'lowerdir' names the layers")
    }
    return [main] + points
  }

  private mutating func readLong(_ argument: String) throws(Failure) {
    switch argument {
    case "--help": wantsHelp = true
    case "--version": wantsVersion = true
    case "--debug" where options.overlay.isProgram: (isDebug, isForeground) = (true, true)
    default: throw .usage("unknown option '\(argument)'")
    }
  }

  /// Reads a group of single-letter flags. `-o` takes the rest of the group or else the next argument.
  private mutating func readFlags(
    _ letters: ArraySlice<UInt8>, _ rest: inout ArraySlice<[UInt8]>, isHelper: Bool
  ) throws(Failure) {
    var letters = letters
    while let letter = letters.popFirst() {
      switch UnicodeScalar(letter) {
      case "o":
        guard let list = letters.isEmpty ? rest.popFirst() : Array(letters) else {
          throw .usage("'-o' needs mount options after it")
        }
        try options.read(list)
        return
      case "f": if isHelper { isDryRun = true } else { isForeground = true }
      case "d":
        isDebug = true
        isForeground = true
      case "h": wantsHelp = true
      case "V": wantsVersion = true
      case "s" where isHelper: options.isSloppy = true
      case "n" where isHelper, "v" where isHelper: break
      case "r" where isHelper: try options.read(Array("ro".utf8))
      case "w" where isHelper: break
      case "t" where isHelper:
        if letters.isEmpty { _ = rest.popFirst() }
        return
      case "N" where isHelper:
        namespace = letters.isEmpty ? rest.popFirst() : Array(letters)
        return
      default: throw .usage("unknown option '-\(UnicodeScalar(letter))'")
      }
    }
  }

  private mutating func setOperands(_ operands: [[UInt8]]) throws(Failure) {
    switch operands.count {
    case 0: throw .usage("MAIN and MOUNTPOINT are missing")
    case 1: throw .usage("MOUNTPOINT is missing after '\(operands[0].shown)'")
    case 2: (main, mountPoint) = (operands[0], operands[1])
    default: throw .usage("unexpected argument '\(operands[2].shown)' after MAIN and MOUNTPOINT")
    }
    if let local = RemoteURL.localPath(of: main) { main = local }
    if main.isEmpty { throw .usage("MAIN is empty") }
    if mountPoint.isEmpty { throw .usage("MOUNTPOINT is empty") }
  }
}
