import ControlClient
import Posix
import Routing

/// A mount to which URLs are offered by a child process, because a hung mount blocks every process that touches it.
struct MountQuery {
  private static let timeoutMilliseconds: CInt = 2000

  private let entry: MountTableEntry
  private var hasTimedOut = false

  init(_ entry: MountTableEntry) { self.entry = entry }

  enum Outcome {
    /// The result, as JSON; empty if the user may not read it.
    case accepted(String)
    case rejected(String)
  }

  /// After a timeout, further URLs are rejected at once.
  mutating func send(_ url: [UInt8]) -> Outcome {
    let mountPoint = entry.mountPoint.shown
    if hasTimedOut { return .rejected("\(mountPoint): not responding") }
    do throws(Errno) {
      switch try ForkedCall.run(timeoutMilliseconds: Self.timeoutMilliseconds, { Self.reply(entry, url) }) {
      case .returned(let reply) where reply.first == Self.accepted:
        return .accepted(Array(reply.dropFirst()).shown)
      case .returned(let reply): return .rejected(Array(reply.dropFirst()).shown)
      case .failed: return .rejected("\(mountPoint): the query failed")
      case .timedOut:
        hasTimedOut = true
        return .rejected("\(mountPoint): no answer within \(Self.timeoutMilliseconds / 1000) s")
      }
    } catch {
      return .rejected("\(mountPoint): \(error)")
    }
  }

  private static let accepted = UInt8(ascii: "+")
  private static let rejected = UInt8(ascii: "-")

  /// The child's reply: a byte for the outcome, then the result or the reason.
  private static func reply(_ entry: MountTableEntry, _ url: [UInt8]) -> [UInt8] {
    do throws(Failure) {
      return [accepted] + (try result(entry, url)?.bytes ?? [])
    } catch {
      return [rejected] + Array(error.message.utf8)
    }
  }

  /// - Returns: nil if the user may not read it.
  private static func result(_ entry: MountTableEntry, _ url: [UInt8]) throws(Failure) -> ResultLine? {
    let control = try MountPoint(mounted: entry.mountPoint).controlFile(device: entry.device)
    let (outcome, readsResults) = try Failure.naming(control.path.shown) { () throws(Errno) in
      var writer = try ControlFileWriter(control)
      return (try writer.write(url, url: url), writer.readsResults)
    }
    if outcome.error == nil, outcome.result != nil || !readsResults { return outcome.result }
    throw .failed("\(entry.mountPoint.shown): \(outcome.reason(readsResults: readsResults))")
  }
}

extension ControlFileWriter.Outcome {
  /// Why there is no result.
  func reason(readsResults: Bool = true) -> String {
    if let error { return error.description }
    return readsResults
      ? "the mount has dropped its result" : "its result cannot be read: \(Errno.permissionDenied)"
  }
}
