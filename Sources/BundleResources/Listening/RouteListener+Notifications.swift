import ControlClient
import Foundation
import Posix
import Routing

extension RouteListener {
  /// The notifications of a mount's routes as an asynchronous sequence.
  ///
  /// ```swift
  /// for try await animal in try RouteListener.notifications(mountPoint: mountPoint, named: ["Animal"]) {
  ///   print(animal.text("Name") ?? "", animal.number("Weight") ?? 0)
  /// }
  /// ```
  ///
  /// Those that are posted after this has returned are in the sequence. It ends when the bundle is unmounted or its task
  /// is cancelled, and throws ``MountError``: ``MountError/disconnected(path:)`` if the process that serves the mount has
  /// died, ``MountError/missedResults(_:)`` if the mount has dropped results before they were read.
  /// - Parameters:
  ///   - mountPoint: the file URL of the directory on which a bundle is mounted.
  ///   - names: the names of the routes; empty for all.
  ///   - sequence: the sequence number after which results count; nil for those after this call.
  /// - Throws: ``MountError``.
  public static func notifications(
    mountPoint: URL, named names: Set<String> = [], since sequence: UInt64? = nil
  ) throws(MountError) -> AsyncThrowingStream<RoutedNotification, any Error> {
    let session = try session(at: mountPoint, since: sequence)
    let (stream, continuation) = AsyncThrowingStream.makeStream(of: RoutedNotification.self)
    continuation.onTermination = { _ in session.cancel() }
    do throws(Errno) {
      try Posix.Thread.startDetached(name: "routes") { run(session, names, mountPoint, continuation) }
    } catch { throw MountError(error, mountPoint) }
    return stream
  }

  static func session(at mountPoint: URL, since sequence: UInt64?) throws(MountError) -> ResultListener {
    try MountError.naming(mountPoint) { control throws(Errno) in
      try ResultListener(control, since: sequence)
    }
  }

  private static func run(
    _ session: ResultListener, _ names: Set<String>, _ mountPoint: URL,
    _ continuation: AsyncThrowingStream<RoutedNotification, any Error>.Continuation
  ) {
    do throws(Errno) {
      _ = try session.run { event in
        switch event {
        case .result(let result):
          guard let posted = result.posted, names.isEmpty || names.contains(posted.name) else { return }
          continuation.yield(RoutedNotification(posted))
        case .missed(let numbers): continuation.finish(throwing: MountError.missedResults(numbers))
        }
      }
      continuation.finish()
    } catch { continuation.finish(throwing: MountError(error, mountPoint)) }
  }
}
