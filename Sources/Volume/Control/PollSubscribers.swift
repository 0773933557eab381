import Fuse
import Glibc
import Posix

/// The clients that poll(2) the control file, with the last result that was delivered to each.
///
/// The kernel reports neither the release of an open file (OPEN was answered with ENOSYS) nor which open file a
/// READ belongs to. A result therefore counts as delivered once poll reported it and the same thread then read
/// the file, which begins with GETATTR; or once poll reported it twice, since epoll(7) polls both when a file is
/// added and when it is waited for. A client that polls without waiting has no poll handle and is identified by
/// its thread alone.
///
/// A listener reads results by ioctl(2), which says what was delivered to its thread.
final class PollSubscribers: Sendable {
  private struct Subscriber {
    var delivered: UInt64 = 0
    /// The last result that poll reported as pending, and how often it did.
    var reported: UInt64 = 0
    var reportCount = 0
    var thread: Int32 = 0
    var isListener = false
    var handle: PollHandle?
  }

  /// Beyond this, those with the oldest open files are dropped: pending results are reported to them again.
  static let capacity = 4096

  private let subscribers = Locked<[UInt64: Subscriber]>([:])
  /// nil if no successor is to come.
  private let record: Locked<PollRecord?>
  /// The last result for which listeners were woken.
  private let woken = Locked<UInt64>(0)

  init(_ record: PollRecord? = nil) { self.record = Locked(record) }

  /// The open files that were polled in a predecessor or are now, by the kernel's numbers.
  var recordedFiles: [UInt64] { record.withLock { $0?.all ?? [] } }

  func register(_ handle: PollHandle?, _ caller: Caller, isListener: Bool = false) {
    if let file = handle?.file { record.withLock { $0?.add(file) } }
    let dropped = subscribers.withLock { subscribers in
      let key = Self.key(handle, caller)
      subscribers[key, default: Subscriber()].handle = handle
      subscribers[key]?.isListener = isListener
      subscribers[key]?.thread = caller.thread
      return Self.dropExcess(from: &subscribers)
    }
    for handle in dropped { handle.wake() }
  }

  /// Whether to report the latest result as pending to a client that polls.
  func hasUndeliveredResult(_ handle: PollHandle?, _ caller: Caller, _ latest: UInt64) -> Bool {
    subscribers.withLock { subscribers in
      var subscriber = subscribers[Self.key(handle, caller)] ?? Subscriber()
      defer { subscribers[Self.key(handle, caller)] = subscriber }
      subscriber.thread = caller.thread
      if latest <= subscriber.delivered { return false }
      subscriber.reportCount = subscriber.reported == latest ? subscriber.reportCount + 1 : 1
      subscriber.reported = latest
      if subscriber.reportCount == 2 { subscriber.delivered = latest }
      return true
    }
  }

  /// Marks the latest result as delivered to the subscribers of a reading thread, if poll reported it to them.
  func recordRead(by caller: Caller, upTo latest: UInt64) {
    // 0 stands for any thread outside our PID namespace.
    if caller.thread == 0 { return }
    subscribers.withLock { subscribers in
      var isDelivered = false
      for (key, subscriber) in subscribers
      where subscriber.thread == caller.thread && subscriber.reported == latest {
        subscribers[key]?.delivered = latest
        isDelivered = true
      }
      // The thread's next poll may come without a handle.
      if isDelivered { subscribers[Self.key(nil, caller), default: Subscriber()].delivered = latest }
    }
  }

  /// Marks results as delivered to the listeners of a thread.
  func recordDelivery(to caller: Caller, upTo latest: UInt64) {
    // 0 stands for any thread outside our PID namespace.
    if caller.thread == 0 { return }
    subscribers.withLock { subscribers in
      for (key, subscriber) in subscribers where subscriber.isListener && subscriber.thread == caller.thread {
        subscribers[key]?.delivered = max(subscriber.delivered, latest)
      }
    }
  }

  /// How many listeners there are, whose threads still run.
  var listenerCount: Int {
    subscribers.withLock { subscribers in
      for (key, subscriber) in subscribers where subscriber.isListener && !Self.isAlive(subscriber.thread) {
        subscribers[key] = nil
      }
      return subscribers.values.count(where: \.isListener)
    }
  }

  private static func isAlive(_ thread: Int32) -> Bool {
    thread == 0 || kill(thread, 0) == 0 || errno == EPERM
  }

  /// Wakes all waiting clients, which then poll again.
  func wake() { wake { _ in true } }

  /// Wakes waiting listeners if there is a result for which they were not woken.
  func wakeListeners(for latest: UInt64) {
    let isNew = woken.withLock { woken in
      defer { woken = max(woken, latest) }
      return latest > woken
    }
    if isNew { wake(where: \.isListener) }
  }

  private func wake(where isWoken: (Subscriber) -> Bool) {
    let handles = subscribers.withLock { subscribers in
      var handles: [PollHandle] = []
      for (key, subscriber) in subscribers where isWoken(subscriber) {
        if let handle = subscriber.handle { handles.append(handle) }
        subscribers[key]?.handle = nil
      }
      return handles
    }
    for handle in handles { handle.wake() }
  }

  /// The kernel's number of the open file (`fuse_file.kh`, which never has bit 63 set), else the thread's number.
  private static func key(_ handle: PollHandle?, _ caller: Caller) -> UInt64 {
    handle?.file ?? 1 << 63 | UInt64(UInt32(bitPattern: caller.thread))
  }

  private static func dropExcess(from subscribers: inout [UInt64: Subscriber]) -> [PollHandle] {
    if subscribers.count <= capacity { return [] }
    let oldest = subscribers.keys.sorted().prefix(capacity / 2)
    return oldest.compactMap { subscribers.removeValue(forKey: $0)?.handle }
  }
}
