import Posix

/// The notifications of a mount's routes: an asynchronous sequence. See
/// ``RouteListener/notifications(mountPoint:named:since:)``.
public struct RoutedNotifications: AsyncSequence, Sendable {
  public typealias Element = RoutedNotification
  public typealias Failure = MountError

  /// How many notifications are kept for a reader that is slower than the mount.
  public static let bufferSize = 1024

  private let stream: AsyncStream<RoutedNotification>
  private let input: Input

  /// - Parameter onEnd: called when the sequence has ended, or is not read any more.
  static func make(onEnd: @escaping @Sendable () -> Void) -> (RoutedNotifications, Input) {
    let (stream, continuation) = AsyncStream.makeStream(
      of: RoutedNotification.self, bufferingPolicy: .bufferingOldest(bufferSize))
    continuation.onTermination = { _ in onEnd() }
    let input = Input(continuation)
    return (RoutedNotifications(stream: stream, input: input), input)
  }

  /// Returns an iterator. Several share the notifications: each goes to one of them.
  public func makeAsyncIterator() -> Iterator {
    Iterator(stream: stream.makeAsyncIterator(), input: input)
  }

  /// Waits for notifications.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate var stream: AsyncStream<RoutedNotification>.Iterator
    fileprivate let input: Input

    /// The next notification; nil after the task was cancelled, or the bundle was unmounted.
    /// - Throws: ``MountError``, once.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(MountError) -> RoutedNotification? {
      if let notification = await stream.next(isolation: actor) { return notification }
      if let failure = input.takeFailure() { throw failure }
      return nil
    }
  }

  /// The end at which the listening thread puts notifications in.
  final class Input: Sendable {
    private struct State {
      var last: UInt64 = 0
      var failure: MountError?
    }

    private let continuation: AsyncStream<RoutedNotification>.Continuation
    private let state = Locked(State())

    init(_ continuation: AsyncStream<RoutedNotification>.Continuation) { self.continuation = continuation }

    /// Adds a notification, or ends the sequence if the reader has fallen behind.
    func add(_ notification: RoutedNotification) {
      switch continuation.yield(notification) {
      case .dropped: end(.fellBehind(sequence: state.withLock { $0.last }))
      default: state.withLock { $0.last = notification.sequence ?? $0.last }
      }
    }

    /// Ends the sequence after what is kept. Only the first end counts.
    func end(_ failure: MountError?) {
      state.withLock { $0.failure = $0.failure ?? failure }
      continuation.finish()
    }

    func takeFailure() -> MountError? {
      state.withLock { state in
        defer { state.failure = nil }
        return state.failure
      }
    }
  }
}
