import ControlClient
import Posix
import Routing

/// One run of a ``RouteListener`` between its start and its stop, on a thread of its own.
final class ListenerSession: Sendable {
  /// A report of the session.
  enum Event: Sendable {
    case posted(PostedResult)
    /// The mount's ring of results dropped these sequence numbers before they were read.
    case missed(ClosedRange<UInt64>)
    /// The mount is gone, or an error ended the session.
    case ended(Errno?)
  }

  private let listener: ResultListener

  /// Starts a session.
  /// - Parameters:
  ///   - since: the sequence number after which results are reported; nil reports those that arrive from now on.
  ///   - report: called on the session's thread, one event at a time.
  /// - Throws: as `ControlFileLocation` and `ResultListener` do; EAGAIN if the system has no room for a thread.
  init(
    at mountPoint: [UInt8], since: UInt64?, report: @escaping @Sendable (Event) -> Void
  ) throws(Errno) {
    let location = try ControlFileLocation(mountPoint: realPath(mountPoint))
    let listener = try ResultListener(location, since: since)
    self.listener = listener
    try Thread.startDetached(name: "routes") { Self.run(listener, report) }
  }

  /// The sequence number of the last result that was read.
  var lastSequence: UInt64 { listener.lastSequence }

  /// Ends the session soon. A report that is in progress goes on; no other begins.
  func cancel() { listener.cancel() }

  private static func run(_ listener: ResultListener, _ report: (Event) -> Void) {
    do throws(Errno) {
      let end = try listener.run { event in
        switch event {
        case .result(let result): if let posted = result.posted { report(.posted(posted)) }
        case .missed(let sequences): report(.missed(sequences))
        }
      }
      if end == .unmounted { report(.ended(nil)) }
    } catch {
      report(.ended(error))
    }
  }
}
