import Fuse
import Posix

/// Those who wait for results with poll(2), and what each of them has been told of.
///
/// The kernel does not say when an open file is closed, nor which open file is read. So a result counts as told
/// once poll reported it and the same thread looked at the file, as a read does first; or once it was reported
/// twice: epoll(7) asks when a file is added and again when it is waited for, and must hear it both times.
/// Who polls and does not wait is known by his thread alone, not by his file.
final class PollSubscribers: Sendable {
  private struct Reader {
    /// The last result it was told of.
    var told: UInt64 = 0
    /// The last result that was there when it polled, and how often that was.
    var reported: UInt64 = 0
    var reports = 0
    var thread: Int32 = 0
    var waiter: PollHandle?
  }

  /// Beyond these, the ones that were opened first are forgotten: they are told again of what is there.
  static let most = 4096

  private let readers = Locked<[UInt64: Reader]>([:])

  /// Notes that somebody polls, and is to be woken.
  func register(_ waiter: PollHandle?, _ caller: Caller) {
    let dropped = readers.withLock { readers in
      readers[Self.key(waiter, caller), default: Reader()].waiter = waiter
      return Self.excess(of: &readers)
    }
    for waiter in dropped { waiter.wake() }
  }

  /// Whether there is a result that somebody who polls has not been told of.
  func hasUndeliveredResult(_ waiter: PollHandle?, _ caller: Caller, _ latest: UInt64) -> Bool {
    readers.withLock { readers in
      var reader = readers[Self.key(waiter, caller)] ?? Reader()
      defer { readers[Self.key(waiter, caller)] = reader }
      reader.thread = caller.thread
      if latest <= reader.told { return false }
      reader.reports = reader.reported == latest ? reader.reports + 1 : 1
      reader.reported = latest
      if reader.reports == 2 { reader.told = latest }
      return true
    }
  }

  /// Notes that somebody looks at the file while a result is the latest.
  func recordRead(by caller: Caller, upTo latest: UInt64) {
    // 0 is whoever our namespace has no number for.
    if caller.thread == 0 { return }
    readers.withLock { readers in
      var isTold = false
      for (key, reader) in readers where reader.thread == caller.thread && reader.reported == latest {
        readers[key]?.told = latest
        isTold = true
      }
      // The next time, he may not wait.
      if isTold { readers[Self.key(nil, caller), default: Reader()].told = latest }
    }
  }

  /// Has all who wait ask again.
  func wake() {
    let waiters = readers.withLock { readers in
      var waiters: [PollHandle] = []
      for (key, reader) in readers {
        guard let waiter = reader.waiter else { continue }
        waiters.append(waiter)
        readers[key]?.waiter = nil
      }
      return waiters
    }
    for waiter in waiters { waiter.wake() }
  }

  /// Who only looks and does not wait is known by his thread. The kernel's numbers of open files are small.
  private static func key(_ waiter: PollHandle?, _ caller: Caller) -> UInt64 {
    waiter?.file ?? 1 << 63 | UInt64(UInt32(bitPattern: caller.thread))
  }

  private static func excess(of readers: inout [UInt64: Reader]) -> [PollHandle] {
    if readers.count <= most { return [] }
    let oldest = readers.keys.sorted().prefix(most / 2)
    return oldest.compactMap { readers.removeValue(forKey: $0)?.waiter }
  }
}
