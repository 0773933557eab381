import ControlClient
import Posix
import Routing

/// `bundlefs sync` and `bundlefs invalidate`, which write commands to the control file.
struct ControlFileCommand {
  private let mountPoint: MountPoint
  private let lines: [String]

  /// `bundlefs sync MOUNTPOINT`.
  static func sync(_ arguments: [[UInt8]]) throws(Failure) -> ControlFileCommand {
    guard arguments.count == 1 else { throw .usage("'sync' needs one MOUNTPOINT") }
    return ControlFileCommand(try MountPoint(mounted: arguments[0]), ["bundlefs:///sync"])
  }

  /// `bundlefs invalidate MOUNTPOINT [PATH…]`.
  static func invalidate(_ arguments: [[UInt8]]) throws(Failure) -> ControlFileCommand {
    guard let given = arguments.first else { throw .usage("'invalidate' needs a MOUNTPOINT") }
    let mountPoint = try MountPoint(mounted: given)
    let paths = arguments.dropFirst().map { path in
      mountPoint.components(of: path).map { "/" + PercentCoding.encoded(path: $0[...]) }.joined()
    }
    return ControlFileCommand(
      mountPoint, (paths.isEmpty ? [""] : paths).map { "bundlefs:///invalidate\($0)" })
  }

  private init(_ mountPoint: MountPoint, _ lines: [String]) {
    self.mountPoint = mountPoint
    self.lines = lines
  }

  /// Returns when the daemon has carried out the commands.
  func run() throws(Failure) {
    let control = try mountPoint.controlFile()
    do throws(Errno) {
      let file = try control.open([.write])
      for line in lines { try file.write(Array(line.utf8)) }
    } catch {
      throw .failed("\(control.path.shown): \(error)")
    }
  }
}
