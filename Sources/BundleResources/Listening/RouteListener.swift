import Foundation
import Posix

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
  /// Posted when the mount dropped results before they were read. The object is the listener; `userInfo` has the
  /// first and the last missed sequence number (`UInt64`) under ``firstKey`` and ``lastKey``.
  public static let didMissResults = Notification.Name("BundleResources.RouteListener.didMissResults")
  /// Posted when the listener ended without ``stop()``. The object is the listener. Unless the mount is simply
  /// gone, `userInfo` has a `POSIXError` under ``errorKey``.
  public static let didEnd = Notification.Name("BundleResources.RouteListener.didEnd")
  /// The key of the first missed sequence number.
  public static let firstKey = "first"
  /// The key of the last missed sequence number.
  public static let lastKey = "last"
  /// The key of the error that ended a listener.
  public static let errorKey = "error"

  private struct State {
    var session: ListenerSession?
    /// The session's reference to this listener.
    var link: Link?
    /// The sequence number of the last known result, while there is no session.
    var lastSequence: UInt64?
  }

  /// A session's weak reference to its listener; its identity tells sessions apart.
  private final class Link: Sendable {
    weak let listener: RouteListener?
    init(_ listener: RouteListener) { self.listener = listener }
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
    state = Locked(State(lastSequence: sequence))
  }

  deinit { stop() }

  /// Whether the listener is started.
  public var isListening: Bool { state.withLock { $0.session != nil } }

  /// The sequence number of the last result that was read; nil before the first start.
  public var lastSequence: UInt64? { state.withLock { $0.session?.lastSequence ?? $0.lastSequence } }

  /// Starts listening, after a stop with the first result since. Notifications are not missed once this has returned.
  /// - Throws: `POSIXError`: `.ENOTTY` where no bundlefs is mounted, `.ENOENT` for a missing directory, `.EACCES`
  ///   without permission to read the control file, `.ENOTCONN` if the mount's daemon is dead, `.EINVAL` for a URL
  ///   that is not a file URL.
  public func start() throws(POSIXError) {
    let path: [UInt8]
    do throws(URLError) { path = try mountPoint.filePath() } catch { throw POSIXError(.EINVAL) }
    do throws(Errno) {
      try state.withLock { state throws(Errno) in
        if state.session != nil { return }
        let link = Link(self)
        state.session = try ListenerSession(at: path, since: state.lastSequence) { event in
          link.listener?.handle(event, from: link)
        }
        state.link = link
      }
    } catch {
      throw POSIXError(POSIXErrorCode(rawValue: error.rawValue) ?? .EIO)
    }
  }

  /// Stops listening. A notification that is being posted goes on; no other begins.
  public func stop() {
    state.withLock { state in
      guard let session = state.session else { return }
      session.cancel()
      state.lastSequence = session.lastSequence
      state.session = nil
      state.link = nil
    }
  }

  private func handle(_ event: ListenerSession.Event, from link: Link) {
    switch event {
    case .posted(let posted): center.post(posted.notification)
    case .missed(let numbers):
      let information: [String: Any] = [Self.firstKey: numbers.lowerBound, Self.lastKey: numbers.upperBound]
      center.post(name: Self.didMissResults, object: self, userInfo: information)
    case .ended(let error):
      guard endSession(of: link) else { return }
      let reason = error.map { POSIXError(POSIXErrorCode(rawValue: $0.rawValue) ?? .EIO) }
      center.post(name: Self.didEnd, object: self, userInfo: reason.map { [Self.errorKey: $0] })
    }
  }

  /// - Returns: false if the session had been stopped or replaced.
  private func endSession(of link: Link) -> Bool {
    state.withLock { state in
      guard state.link === link else { return false }
      state.lastSequence = state.session?.lastSequence
      state.session = nil
      state.link = nil
      return true
    }
  }
}
