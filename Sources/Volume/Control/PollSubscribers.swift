import Fuse
import Posix

/// The clients that poll(2) the control file, with the last result that was delivered to each.
///
/// The kernel reports neither the release of an open file (OPEN was answered with ENOSYS) nor which open file a
/// READ belongs to. A result therefore counts as delivered once poll reported it and the same thread then read
/// the file, which begins with GETATTR; or once poll reported it twice, since epoll(7) polls both when a file is
/// added and when it is waited for. A client that polls without waiting has no poll handle and is identified by
/// its thread alone.
final class PollSubscribers: Sendable {
  private struct Subscriber {
    var delivered: UInt64 = 0
    /// The last result that poll reported as pending, and how often it did.
    var reported: UInt64 = 0
    var reportCount = 0
    var thread: Int32 = 0
    var handle: PollHandle?
  }

  /// Beyond this, those with the oldest open files are dropped: pending results are reported to them again.
  static let capacity = 4096

  private let subscribers = Locked<[UInt64: Subscriber]>([:])

  func register(_ handle: PollHandle?, _ caller: Caller) {
    let dropped = subscribers.withLock { subscribers in
      subscribers[Self.key(handle, caller), default: Subscriber()].handle = handle
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

  /// Wakes all waiting clients, which then poll again.
  func wake() {
    let handles = subscribers.withLock { subscribers in
      let handles = subscribers.values.compactMap(\.handle)
      for key in subscribers.keys { subscribers[key]?.handle = nil }
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
