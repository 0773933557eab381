import Posix

/// The inotify events that a predecessor has left unread.
///
/// Before a predecessor hands over, it handles all events that it has read. If it watched every directory, the kernel's
/// caches then match the layers as of its last read(2), and the layers are unchanged since if there is no unread event.
public final class UnreadEvents: Sendable {
  private final class Instance: Sendable {
    let inotify: Inotify
    init(_ file: CInt) { inotify = Inotify(owning: file) }
  }
  private let instance: Locked<Instance?>

  /// - Parameter file: the predecessor's inotify instance, which this closes.
  public init(owning file: CInt) { instance = Locked(Instance(file)) }

  /// Whether there are none. An overflow is one.
  var areNone: Bool { instance.withLock { $0.map { $0.inotify.pendingBytes == 0 } ?? false } }

  /// Removes the watches, on a thread of its own: the kernel takes its time.
  func close() {
    guard let instance = instance.withLock({ $0.take() }) else { return }
    try? Thread.startDetached(name: "stale watches") { withExtendedLifetime(instance) {} }
  }
}
