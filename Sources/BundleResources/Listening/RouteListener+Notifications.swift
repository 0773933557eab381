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
  ///
  /// Of a reader that is slower than the mount, ``RoutedNotifications/bufferSize`` notifications are kept. The next one
  /// ends the sequence: after those that are kept it throws ``MountError/fellBehind(sequence:)``, with the number from which
  /// another sequence continues without a gap, as long as the mount has the results.
  /// - Parameters:
  ///   - mountPoint: the file URL of the directory on which a bundle is mounted.
  ///   - names: the names of the routes; empty for all.
  ///   - sequence: the sequence number after which results count; nil for those after this call.
  /// - Throws: ``MountError``.
  public static func notifications(
    mountPoint: URL, named names: Set<String> = [], since sequence: UInt64? = nil
  ) throws(MountError) -> RoutedNotifications {
    let session = try session(at: mountPoint, since: sequence)
    let (notifications, input) = RoutedNotifications.make { session.cancel() }
    do throws(Errno) {
      try Posix.Thread.startDetached(name: "routes") { run(session, names, mountPoint, input) }
    } catch { throw MountError(error, mountPoint) }
    return notifications
  }

  static func session(at mountPoint: URL, since sequence: UInt64?) throws(MountError) -> ResultListener {
    try MountError.naming(mountPoint) { control throws(Errno) in
      try ResultListener(control, since: sequence)
    }
  }

  private static func run(
    _ session: ResultListener, _ names: Set<String>, _ mountPoint: URL, _ input: RoutedNotifications.Input
  ) {
    do throws(Errno) {
      _ = try session.run { event in
        switch event {
        case .result(let result):
          guard let posted = result.posted, names.isEmpty || names.contains(posted.name) else { return }
          input.add(RoutedNotification(posted))
        case .missed(let numbers): input.end(.missedResults(numbers))
        }
      }
      input.end(nil)
    } catch { input.end(MountError(error, mountPoint)) }
  }
}
