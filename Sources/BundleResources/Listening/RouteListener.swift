import ControlClient
import Foundation
import Posix
import Routing

/// Posts the notifications of a mount's routes in this process.
///
/// The first route that matches a URL written to a mount's control file turns the URL into a notification. A
/// listener posts these notifications to a NotificationCenter: the name is the route's, the object a
/// ``RoutedURL``, and `userInfo` has the values from the URL as `String`, `Int` and `Double`.
///
/// ```swift
/// let listener = RouteListener(mountPoint: URL(filePath: "/home/me/mnt"))
/// let animals = NotificationCenter.default.addObserver(
///   forName: Notification.Name("Animal"), object: nil, queue: nil
/// ) { animal in
///   print(animal.userInfo?["Name"] as? String ?? "", animal.userInfo?["Weight"] as? Double ?? 0)
/// }
/// try listener.start()
/// ```
///
/// Notifications are posted one at a time, in the order of the results, on the listener's own thread. The listener
/// stops when it is deinitialized.
public final class RouteListener: Sendable {
  /// Posted when the mount dropped results before they were read. The object is the listener;
  /// ``missedResults(of:)`` has their sequence numbers.
  public static let didMissResults = Notification.Name("BundleResources.RouteListener.didMissResults")
  /// Posted when the listener ended without ``stop()``. The object is the listener. Unless the bundle was unmounted,
  /// ``error(of:)`` says why: `.ENOTCONN` if the process that serves the mount has died.
  public static let didEnd = Notification.Name("BundleResources.RouteListener.didEnd")
  private static let missedKey = "missed"
  private static let errorKey = "error"

  /// The sequence numbers that a mount has dropped; nil for any notification but ``didMissResults``.
  public static func missedResults(of notification: Notification) -> ClosedRange<UInt64>? {
    notification.userInfo?[missedKey] as? ClosedRange<UInt64>
  }

  /// The error that has ended a listener; nil if the bundle was unmounted, and for any notification but ``didEnd``.
  public static func error(of notification: Notification) -> POSIXError? {
    notification.userInfo?[errorKey] as? POSIXError
  }

  private struct State {
    /// The run between a start and the stop that follows, on a thread of its own.
    var session: ResultListener?
    /// The sequence number of the last known result, while there is no session.
    var lastSequence: UInt64?

    mutating func endSession() {
      lastSequence = session?.lastSequence ?? lastSequence
      session = nil
    }
  }

  private let mountPoint: URL
  private let center: NotificationCenter
  private let state: Locked<State>

  /// Creates a listener that is not started.
  /// - Parameters:
  ///   - mountPoint: the file URL of the directory on which a bundle is mounted.
  ///   - center: the center to which notifications are posted.
  ///   - sequence: the sequence number after which results are posted, such as the ``lastSequence`` of an earlier
  ///     listener, even of another process; nil posts those that arrive after the start.
  public init(mountPoint: URL, center: NotificationCenter = .default, since sequence: UInt64? = nil) {
    self.mountPoint = mountPoint
    self.center = center
    state = Locked(order: 10, State(lastSequence: sequence))
  }

  deinit { stop() }

  /// Whether the listener is started.
  public var isListening: Bool { state.withLock { $0.session != nil } }

  /// The sequence number of the last result that was read; nil before the first start.
  public var lastSequence: UInt64? { state.withLock { $0.session?.lastSequence ?? $0.lastSequence } }

  /// Starts listening, after a stop with the first result since. Notifications are not missed once this has returned.
  /// - Throws: ``MountError``, which names the cause.
  public func start() throws(MountError) {
    try state.withLock { state throws(MountError) in
      if state.session != nil { return }
      let session = try Self.session(at: mountPoint, since: state.lastSequence)
      do throws(Errno) {
        try Posix.Thread.startDetached(name: "routes") { [weak self] in
          let end = Result { () throws(Errno) in try session.run { self?.post($0) } }
          self?.handleEnd(of: session, end)
        }
      } catch { throw MountError(error, mountPoint) }
      state.session = session
    }
  }

  /// Stops listening. A notification that is being posted continues; no other begins.
  public func stop() {
    state.withLock { state in
      state.session?.cancel()
      state.endSession()
    }
  }

  private func post(_ event: ResultListener.Event) {
    switch event {
    case .result(let result):
      if let posted = result.posted { center.post(posted.notification) }
    case .missed(let numbers):
      center.post(name: Self.didMissResults, object: self, userInfo: [Self.missedKey: numbers])
    }
  }

  private func handleEnd(of session: ResultListener, _ end: Result<ResultListener.End, Errno>) {
    if case .success(.cancelled) = end { return }
    let isCurrent = state.withLock { state in
      guard state.session === session else { return false }
      state.endSession()
      return true
    }
    guard isCurrent else { return }
    var information: [String: Any]?
    if case .failure(let error) = end { information = [Self.errorKey: POSIXError(error)] }
    center.post(name: Self.didEnd, object: self, userInfo: information)
  }
}
