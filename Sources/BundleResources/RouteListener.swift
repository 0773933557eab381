import Foundation
import Posix

/// Posts the notifications of a mount's routes in this program.
///
/// A URL that is written to a mount's control file becomes a notification by the first route that takes it. A
/// listener waits for them and posts each to a NotificationCenter, with the route's name, a ``RoutedURL`` as
/// its object, and the values of the URL in its `userInfo`: texts are `String`, integers `Int`, and numbers
/// `Double`.
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
/// The notifications come one by one, in the order of the results, on a thread of the listener's own. It stops
/// when it is let go.
public final class RouteListener: Sendable {
  /// Posted when results were missed, since the mount keeps the last ones only: the object is the listener, and
  /// `userInfo` has the numbers of the first and the last of them, `UInt64`, as ``firstKey`` and ``lastKey``.
  public static let didMissResults = Notification.Name("BundleResources.RouteListener.didMissResults")
  /// Posted when the listener has ended by itself, since the mount is gone or cannot be read: the object is the
  /// listener. If it is not just gone, `userInfo` has a `POSIXError` as ``errorKey``.
  public static let didEnd = Notification.Name("BundleResources.RouteListener.didEnd")
  /// The number of the first result that was missed.
  public static let firstKey = "first"
  /// The number of the last result that was missed.
  public static let lastKey = "last"
  /// Why a listener ended.
  public static let errorKey = "error"

  private struct State {
    var session: ListenerSession?
    /// What joins the listening with this listener.
    var link: Link?
    /// The number of the last result that is known, while there is no listening.
    var last: UInt64?
  }

  /// The way back from a listening, which keeps no listener alive.
  private final class Link: Sendable {
    weak let listener: RouteListener?
    init(_ listener: RouteListener) { self.listener = listener }
  }

  private let mountPoint: URL
  private let center: NotificationCenter
  private let state: Locked<State>

  /// A listener, which does not listen yet.
  /// - Parameters:
  ///   - mountPoint: the file URL of the directory on which a bundle is mounted.
  ///   - center: where notifications are posted.
  ///   - sequence: the number of the last result that is known already, so that who stops and goes on, even as
  ///     another process, misses nothing that the mount still keeps; nil: those that are there when it starts.
  public init(mountPoint: URL, center: NotificationCenter = .default, since sequence: UInt64? = nil) {
    self.mountPoint = mountPoint
    self.center = center
    state = Locked(State(last: sequence))
  }

  deinit { stop() }

  /// Whether it listens.
  public var isListening: Bool { state.withLock { $0.session != nil } }

  /// The number of the last result that was read; nil before the first start.
  public var lastSequence: UInt64? { state.withLock { $0.session?.lastSequence ?? $0.last } }

  /// Begins to listen, or goes on where it was stopped. When this has returned, no notification is missed.
  /// - Throws: `POSIXError`: `.ENOTTY` where no bundlefs is mounted, `.ENOENT` without such a directory,
  ///   `.EACCES` to those who may not read the control file, `.ENOTCONN` where the mount's daemon is dead,
  ///   `.EINVAL` for what is no file URL.
  public func start() throws(POSIXError) {
    let path: [UInt8]
    do throws(URLError) { path = try mountPoint.filePath() } catch { throw POSIXError(.EINVAL) }
    do throws(Errno) {
      try state.withLock { state throws(Errno) in
        if state.session != nil { return }
        let link = Link(self)
        state.session = try ListenerSession(at: path, since: state.last) { report in
          link.listener?.take(report, from: link)
        }
        state.link = link
      }
    } catch {
      throw POSIXError(POSIXErrorCode(rawValue: error.rawValue) ?? .EIO)
    }
  }

  /// Ends listening. An observer may still be busy with a notification at this moment; none begins after it.
  public func stop() {
    state.withLock { state in
      guard let session = state.session else { return }
      session.cancel()
      state.last = session.lastSequence
      state.session = nil
      state.link = nil
    }
  }

  private func take(_ report: ListenerSession.Event, from link: Link) {
    switch report {
    case .posted(let posted): center.post(posted.notification)
    case .missed(let numbers):
      let information: [String: Any] = [Self.firstKey: numbers.lowerBound, Self.lastKey: numbers.upperBound]
      center.post(name: Self.didMissResults, object: self, userInfo: information)
    case .ended(let error):
      guard end(link) else { return }
      let reason = error.map { POSIXError(POSIXErrorCode(rawValue: $0.rawValue) ?? .EIO) }
      center.post(name: Self.didEnd, object: self, userInfo: reason.map { [Self.errorKey: $0] })
    }
  }

  /// - Returns: whether the listening is still the listener's.
  private func end(_ link: Link) -> Bool {
    state.withLock { state in
      guard state.link === link else { return false }
      state.last = state.session?.lastSequence
      state.session = nil
      state.link = nil
      return true
    }
  }
}
