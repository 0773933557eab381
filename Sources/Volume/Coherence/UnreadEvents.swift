import Posix

/// The inotify events that a predecessor has not read.
///
/// A predecessor that hands over with every directory watched, and all that it has read handled, leaves in the kernel's
/// caches what its layers had when it read for the last time. While there is no further event, its layers have that still.
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
