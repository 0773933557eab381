import Posix
import Routing

/// `bundlefs status PATH [--json]`: of the mount that contains the path.
struct StatusCommand {
  private let path: [UInt8]
  private let isJSON: Bool

  init(_ arguments: [[UInt8]]) throws(Failure) {
    let operands = arguments.filter { $0 != Array("--json".utf8) }
    if let option = operands.first(where: { $0.starts(with: "--".utf8) }) {
      throw .unknownOption(option.shown, of: "status")
    }
    guard operands.count == 1, !operands[0].isEmpty else { throw .usage("'status' needs one MOUNTPOINT") }
    isJSON = operands.count < arguments.count
    path = operands[0]
  }

  func run() throws(Failure) {
    let asked = try AskedMount.all(at: [path], isJSON ? .json : .text)[0].mapError(\.failure).get()
    guard case .alive(let text) = asked.inspection else { throw failure(asked) }
    // Each line by itself: the daemon may be another user's.
    let lines = text.shown.split(separator: "\n", omittingEmptySubsequences: false)
    Terminal.print(lines.map { String($0).escapingControls }.joined(separator: "\n"))
  }

  private func failure(_ asked: AskedMount) -> Failure {
    let path = asked.mount.entry.mountPoint.shown
    switch asked.inspection {
    case .dead: return MountPoint.deadDaemon(path)
    case .unresponsive: return MountPoint.silentDaemon(path)
    case .alive, .stalled, .covered, .unknown:
      return .failed("\(path): \(asked.inspection.fault ?? "no status")")
    }
  }
}
