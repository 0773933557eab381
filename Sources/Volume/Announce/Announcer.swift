import Fuse
import Glibc
import Posix

/// Makes inotify report, to programs that watch the mount, what changed in the layers.
///
/// The kernel sends no events for invalidations. So a thread makes each change once more through the mount, where
/// the daemon grants it without doing anything (`Replayer`), and the kernel reports that. It does so after the
/// kernel's caches are coherent again: a program that reads at once reads the new state. No other thread waits for
/// this one.
final class Announcer: EventObserver {
  /// Changes announced while the root is held open, about 1 ms. Without `CAP_SYS_ADMIN` the mount cannot be unmounted
  /// meanwhile.
  private static let batch = 16
  /// Then the mount is held open for one of so many parts of the time on average.
  private static let dutyCycle: Int64 = 4
  /// Microseconds from a change to its announcement. Programs that wait for the change see it first: the requests of an
  /// announcement would delay theirs. Changes in quick succession are announced together.
  private static let settlingTime: UInt32 = 1000
  /// Microseconds of the remaining parts that may be postponed, so that a few changes are announced at once.
  private static let credit: Int64 = 100_000

  let expected = ExpectedRequest()
  private let store: NodeStore
  private let mapper: MountEventMapper
  private let pending = Locked(CoalescingEventQueue())
  private let recorded = Locked<[ObservedEvent]>([])
  private let eventFD: EventFD
  /// A random name that no file in the root has: looking it up shows that the root is ours.
  private let probeName: [UInt8]
  private let announced = Counter()
  private let superseded = Counter()
  private let dropped = Counter()
  private let state = Locked(State())

  private struct State {
    var isStopped = false
    var hasEnded = true
    var lastDrop: String?
    var thread: ThreadHandle?
  }

  init(_ store: NodeStore, _ reserved: ReservedNames) throws(Errno) {
    self.store = store
    mapper = MountEventMapper(store: store, reserved: reserved)
    eventFD = try EventFD()
    probeName = Array(".bundlefs-\(UInt64.random(in: 0 ... .max))".utf8)
  }

  func start(_ kernel: any KernelNotifier) throws(Errno) {
    try Interrupt.installHandler()
    state.withLock { $0.hasEnded = false }
    let thread = ThreadHandle(
      try Thread(name: "announcer", hasShortSlice: true) { [self] in
        LayerAccess.current = .shared
        expected.setThread(Thread.currentID)
        run(kernel)
        state.withLock { $0.hasEnded = true }
      })
    state.withLock { $0.thread = thread }
  }

  /// Ends the thread; what is still queued is dropped. A thread that blocks for two seconds is left behind.
  func stop() {
    let thread = state.withLock { state in
      state.isStopped = true
      return state.thread
    }
    eventFD.signal()
    for _ in 0..<2000 where !state.withLock({ $0.hasEnded }) {
      thread?.interrupt()
      usleep(1000)
    }
    if state.withLock({ $0.hasEnded }) { thread?.join() }
  }

  func record(_ change: ObservedEvent) { recorded.withLock { $0.append(change) } }

  func flush() {
    let changes = recorded.withLock { recorded in
      defer { recorded.removeAll(keepingCapacity: true) }
      return recorded
    }
    if changes.isEmpty { return }
    let now = TimeSpec.monotonic
    pending.withLock { pending in
      for change in changes {
        switch change {
        case .name(let key, let change): pending.add(change, at: key, now: now)
        case .renaming(let source, let target): pending.addRenaming(from: source, to: target)
        case .directory(let directory): pending.add(directory: directory, now: now)
        }
      }
    }
    eventFD.signal()
  }

  var figures: AnnouncementFigures {
    AnnouncementFigures(
      announced: announced.count, coalesced: pending.withLock { $0.coalesced } + superseded.count,
      dropped: dropped.count, lastDrop: state.withLock { $0.lastDrop })
  }

  // MARK: - The thread

  private func run(_ kernel: any KernelNotifier) {
    // Until when, in microseconds, the mount is to be left alone to keep the duty cycle.
    var idleUntil: Int64 = 0
    while !state.withLock({ $0.isStopped }) {
      let now = TimeSpec.monotonic
      let excess = idleUntil - now.microseconds - Self.credit
      if excess > 0 {
        usleep(UInt32(clamping: excess))
        continue
      }
      let (items, time) = pending.withLock { ($0.take(Self.batch, now: now), $0.timeout(now: now)) }
      if items.isEmpty {
        eventFD.wait(or: -1, milliseconds: time)
        if !state.withLock({ $0.isStopped }) { usleep(Self.settlingTime) }
      } else {
        if announce(items, kernel) { continue }
        let end = TimeSpec.monotonic.microseconds
        idleUntil = max(idleUntil, end) + (end - now.microseconds) * (Self.dutyCycle - 1)
      }
    }
    dropped.add(UInt64(pending.withLock { $0.removeAll() }))
  }

  /// - Returns: whether the mount could be unmounted all the time.
  private func announce(_ items: [CoalescingEventQueue.Item], _ kernel: any KernelNotifier) -> Bool {
    var known: Set<MountEvent> = []
    let due = items.flatMap { mapper.events(for: $0) }.filter { known.insert($0).inserted }
    if due.isEmpty { return true }
    do throws(Errno) {
      let replayer = try Replayer(store, kernel, expected, probeName: probeName)
      for event in due { announce(event, replayer) }
      return replayer.isDetached
    } catch {
      drop(due.count, error)
      return false
    }
  }

  private func announce(_ event: MountEvent, _ replayer: Replayer) {
    // Before the kernel notices by itself.
    if case .name(let key, _) = event { replayer.deleteFormerEntries(key) }
    do throws(Errno) {
      switch event {
      case .directory(let directory):
        // This one event stands for those of its names, too.
        for name in store.formerFileNames(in: directory) {
          replayer.deleteFormerEntries(EntryKey(parent: directory, name: name))
        }
        try replayer.touch(directory)
      case .renaming(let source, let target):
        replayer.deleteFormerEntries(target)
        try replayer.rename(source, to: target)
      case .name(let key, .appeared(let kind)): try create(key, kind, replayer)
      case .name(let key, .disappeared(let isDirectory)): try replayer.remove(key, isDirectory: isDirectory)
      case .name(let key, .written): try replayer.write(key)
      case .name(let key, .modified): try replayer.write(key, isClosed: false)
      case .name(let key, .closed): try replayer.write(key, isModified: false)
      case .name(let key, .attributes): try replayer.touch(key)
      }
      announced.add(1)
    } catch {
      // The name or its directory is gone by now, which is announced by itself.
      if error == .noSuchFileOrDirectory || error == .notDirectory {
        superseded.add(1)
      } else {
        drop(1, error)
      }
    }
  }

  private func create(_ key: EntryKey, _ kind: FileKind, _ replayer: Replayer) throws(Errno) {
    do throws(Errno) { try replayer.create(key, kind) } catch {
      // Another process has looked the directory up already.
      guard kind == .directory, error == .fileExists else { throw error }
      try replayer.touch(key)
    }
  }

  private func drop(_ count: Int, _ reason: Errno) {
    dropped.add(UInt64(count))
    let text = reason == .staleFileHandle ? "the mount's path leads elsewhere" : reason.description
    state.withLock { $0.lastDrop = text }
  }
}

struct AnnouncementFigures {
  let announced: UInt64
  /// Changes for which other events stand.
  let coalesced: UInt64
  let dropped: UInt64
  let lastDrop: String?
}
