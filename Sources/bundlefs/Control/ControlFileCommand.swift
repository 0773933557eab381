import ControlClient
import Posix
import Routing

/// `bundlefs sync MOUNTPOINT` and `bundlefs invalidate MOUNTPOINT [PATH…]`.
struct ControlFileCommand {
  private let mountPoint: MountPoint
  private let lines: [String]

  static func sync(_ arguments: [[UInt8]]) throws(Failure) -> ControlFileCommand {
    guard arguments.count == 1 else { throw .usage("'sync' needs one MOUNTPOINT") }
    let mountPoint = try MountPoint(mounted: arguments[0])
    return ControlFileCommand(mountPoint: mountPoint, lines: ["bundlefs:///sync"])
  }

  static func invalidate(_ arguments: [[UInt8]]) throws(Failure) -> ControlFileCommand {
    guard let given = arguments.first else { throw .usage("'invalidate' needs a MOUNTPOINT") }
    let mountPoint = try MountPoint(mounted: given)
    let paths = arguments.dropFirst().map { path in
      mountPoint.components(of: path).map { "/" + PercentCoding.encoded(path: $0[...]) }.joined()
    }
    let lines = (paths.isEmpty ? [""] : paths).map { "bundlefs:///invalidate\($0)" }
    return ControlFileCommand(mountPoint: mountPoint, lines: lines)
  }

  /// Returns when the daemon has carried out the commands.
  func run() throws(Failure) {
    let control = try mountPoint.controlFile()
    try Failure.naming(control.path.shown) { () throws(Errno) in
      let file = try control.open([.write])
      for line in lines { try file.write(Array(line.utf8)) }
    }
  }
}
