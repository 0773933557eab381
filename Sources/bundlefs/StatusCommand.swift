import Glibc
import Posix
import Volume

/// `bundlefs status MOUNTPOINT [--json]`.
struct StatusCommand {
  private let mountPoint: MountPoint
  private let isJSON: Bool

  /// Reads what follows `status`.
  init(_ arguments: [[UInt8]]) throws(Failure) {
    let operands = arguments.filter { $0 != Array("--json".utf8) }
    guard operands.count == 1 else { throw .usage("'status' needs one MOUNTPOINT") }
    isJSON = operands.count < arguments.count
    mountPoint = try MountPoint(mounted: operands[0])
  }

  /// Prints what the mount tells of itself.
  func run() throws(Failure) {
    let text: [UInt8]
    do throws(Errno) { text = try read() } catch {
      throw .failed("\(mountPoint.path.shown): \(error)")
    }
    Terminal.say(text.shown)
  }

  private func read() throws(Errno) -> [UInt8] {
    let root = try withCName(mountPoint.path) { name throws(Errno) in
      try Descriptor.open(name, [.read, .directory])
    }
    var text: [UInt8] = []
    for page in UInt8.min...UInt8.max {
      let answer = try root.control(
        StatusProtocol.command(isJSON ? .json : .text, page: page), size: StatusProtocol.answerSize)
      let length = answer.withUnsafeBytes { Int($0.loadUnaligned(as: UInt32.self)) }
      text += answer[4..<min(answer.count, 4 + max(0, length - text.count))]
      if text.count >= length { return text }
    }
    return text
  }
}
