import Fuse
import Glibc
import Posix
import Synchronization

/// Keeps the pages that the kernel has cached of a large file when a program writes to it through the mount.
///
/// The kernel drops all pages of a file when the reply to a GETATTR has another modification time than it knows
/// (`FUSE_AUTO_INVAL_DATA`), even one that the mount's own write has set. So, soon after a write, a thread sets the access
/// time through the mount. That changes nothing, and the kernel takes the times in the reply to SETATTR without dropping
/// pages. Until then it discards the attributes in replies, as it does where an invalidation of them came between request and
/// reply; the program that asks gets them all the same.
final class PageKeeper: Sendable {
  /// The size in bytes from which on it is worth it: a smaller file is read again with one message.
  static let leastSize: UInt64 = 128 << 10
  /// Milliseconds without a write after which the access time is set: further writes would wait for that.
  private static let delay: CInt = 10
  /// The same from the first write on, where they go on.
  private static let maxDelay: CInt = 1000

  private struct WrittenFile {
    let first: TimeSpec
    var last: TimeSpec

    func isDue(_ now: TimeSpec) -> Bool {
      now.milliseconds(since: last) >= PageKeeper.delay
        || now.milliseconds(since: first) >= PageKeeper.maxDelay
    }
  }

  private let store: NodeStore
  private let own: OwnChanges
  private let kernel: Locked<(any KernelNotifier)?>
  private let worker = SerialWorker(name: "file-times")
  /// The thread that sets access times; 0 while none does.
  private let thread = Atomic<Int32>(0)
  /// What the last reply to it said.
  private let given = Locked<FileStatus?>(nil)
  /// Files whose times the kernel is to take.
  private let files = Locked<[NodeID: WrittenFile]>([:])
  /// Not without `CAP_SYS_ADMIN`, nor at the end.
  private let isPossible = Atomic(true)

  init(_ store: NodeStore, _ own: OwnChanges, _ kernel: Locked<(any KernelNotifier)?>) {
    (self.store, self.own, self.kernel) = (store, own, kernel)
  }

  /// - Throws: EAGAIN.
  func start(_ watchdog: LayerWatchdog) throws(Errno) { try worker.start(watchdog) }

  func stop() {
    isPossible.store(false, ordering: .relaxed)
    worker.stop()
  }

  /// Records that a program has written to a file.
  func didWrite(to node: NodeID, _ attributes: FileStatus) {
    guard attributes.size >= Self.leastSize, isPossible.load(ordering: .relaxed) else { return }
    let now = TimeSpec.monotonic
    let isQueued = files.withLock { $0[node]?.last = now } != nil
    if !isQueued { _ = queue(node, now) }
  }

  /// Has the kernel discard attributes that would make it drop pages for a write of ours. To be called before they are
  /// sent, in the reply to GETATTR, LOOKUP or READDIRPLUS.
  func willReply(with attributes: FileStatus, of node: NodeID) {
    guard attributes.size >= Self.leastSize, isPossible.load(ordering: .relaxed),
      own.hasOldTimes(of: node, as: attributes), let kernel = kernel.withLock({ $0 }), queue(node, .monotonic)
    else { return }
    try? kernel.invalidateAttributes(of: node)
  }

  /// - Returns: false if there is no thread for it.
  private func queue(_ node: NodeID, _ now: TimeSpec) -> Bool {
    let isFirst = files.withLock { files in
      defer { if files[node] == nil { files[node] = WrittenFile(first: now, last: now) } }
      return files.isEmpty
    }
    return !isFirst || worker.add { [self] in while isPossible.load(ordering: .relaxed), setTimesOfNext() {} }
  }

  /// Sets the access times of the files that are due after a pause.
  /// - Returns: whether there are others.
  private func setTimesOfNext() -> Bool {
    usleep(UInt32(Self.delay) * 1000)
    let now = TimeSpec.monotonic
    let (due, hasMore) = files.withLock { files in
      let due = files.filter { $0.value.isDue(now) }.keys
      for node in due { files[node] = nil }
      return (due, !files.isEmpty)
    }
    guard let kernel = kernel.withLock({ $0 }) else { return false }
    setTimes(of: due, kernel)
    return hasMore
  }

  private func setTimes(of files: some Sequence<NodeID>, _ kernel: any KernelNotifier) {
    thread.store(Thread.currentID, ordering: .relaxed)
    defer { thread.store(0, ordering: .relaxed) }
    for node in files {
      do throws(Errno) {
        try kernel.setAccessTime(of: node, .now)
        // Not before the kernel has taken them.
        if let given = given.withLock({ $0.take() }) { own.recordTimes(of: node, as: given) }
      } catch {
        // Then the next reply makes the kernel drop the pages.
        own.recordTimes(of: node)
        if error == .notPermitted { isPossible.store(false, ordering: .relaxed) }
      }
    }
  }

  // MARK: - SETATTR

  /// Whether a SETATTR is the thread's own.
  func isOwn(_ caller: Caller) -> Bool {
    caller.thread != 0 && caller.thread == thread.load(ordering: .relaxed)
  }

  /// Replies to it, unless the kernel knows the times already, or another program has changed the file: then it must see
  /// that they are new.
  func reply(for node: NodeID, _ reply: consuming Reply<ReplyKind.Attributes>) {
    var attributes: NodeAttributes
    do throws(Errno) {
      attributes = try store.attributes(of: node)
      guard own.hasOldTimes(of: node, as: attributes.attributes) else {
        throw .resourceTemporarilyUnavailable
      }
    } catch {
      return reply.fail(error)
    }
    given.withLock { $0 = attributes.attributes }
    // As those of every SETATTR.
    attributes.timeout = 0
    reply.send(attributes)
  }
}
