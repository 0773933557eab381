import ControlClient
import Posix
import Routing

/// `bundlefs status MOUNTPOINT [--json]`.
struct StatusCommand {
  private let mountPoint: MountPoint
  private let isJSON: Bool

  init(_ arguments: [[UInt8]]) throws(Failure) {
    let operands = arguments.filter { $0 != Array("--json".utf8) }
    guard operands.count == 1 else { throw .usage("'status' needs one MOUNTPOINT") }
    isJSON = operands.count < arguments.count
    mountPoint = try MountPoint(mounted: operands[0])
  }

  func run() throws(Failure) {
    let text = try Failure.naming(mountPoint.path.shown) { () throws(Errno) in
      try StatusClient.read(isJSON ? .json : .text, at: mountPoint.path)
    }
    // Each line by itself: the daemon may be another user's.
    let lines = text.shown.split(separator: "\n", omittingEmptySubsequences: false)
    Terminal.print(lines.map { String($0).escapingControls }.joined(separator: "\n"))
  }
}
