import Fuse
import Glibc
import Posix

/// Tells programs that watch the mount (inotify) what has changed beneath it: the kernel has no events for what
/// is taken back from its caches, so each change is made once more through the mount, where it changes nothing.
///
/// It has a thread of its own, which nothing waits for: a change that cannot be made just now keeps nobody from
/// anything. It tells of a change only after the kernel's caches are true again, so that who reads at once reads
/// what is new.
final class Announcer: Sendable {
  /// What the invalidator found, on its way to those who wait.
  enum Note {
    case name(EntryKey, NameChange)
    case renaming(EntryKey, to: EntryKey)
    case directory(NodeID)
  }

  /// How many changes are told while the mount is held open, which for that time, a millisecond or so, cannot be
  /// unmounted.
  private static let batch = 16
  /// Over a long time, the mount is held open for one part in so many, and left alone for the others.
  private static let parts: Int64 = 4
  /// How much of that may be put off, in microseconds: a few changes are not kept waiting.
  private static let credit: Int64 = 100_000

  let expectation = ExpectedRequest()
  private let pending = Locked(CoalescingEventQueue())
  private let notes = Locked<[Note]>([])
  private let eventFD: EventFD
  /// A name that nobody will have given to a file.
  private let greeting: [UInt8]
  private let told = Counter()
  private let covered = Counter()
  private let dropped = Counter()
  private let state = Locked(State())

  private struct State {
    var isOver = false
    var hasEnded = true
    var lastDrop: String?
    var thread: ThreadHandle?
  }

  init() throws(Errno) {
    eventFD = try EventFD()
    greeting = Array(".bundlefs-\(UInt64.random(in: 0 ... .max))".utf8)
  }

  /// Starts the thread.
  /// - Throws: EAGAIN when the system has no room for it.
  func start(_ volume: Volume, _ kernel: any KernelNotifier) throws(Errno) {
    try Interrupt.installHandler()
    state.withLock { $0.hasEnded = false }
    let thread = ThreadHandle(
      try Thread(name: "announcer") { [self] in
        expectation.setThread(Thread.currentID)
        run(volume, kernel)
        state.withLock { $0.hasEnded = true }
      })
    state.withLock { $0.thread = thread }
  }

  /// Ends the thread; what is still to be told, nobody will hear. One that stands still is not waited for.
  func stop() {
    let thread = state.withLock { state in
      state.isOver = true
      return state.thread
    }
    eventFD.signal()
    for _ in 0..<2000 where !state.withLock({ $0.hasEnded }) {
      thread?.interrupt()
      usleep(1000)
    }
    if state.withLock({ $0.hasEnded }) { thread?.join() }
  }

  /// Notes something that is to be told once the invalidations that belong to it are all carried out.
  func note(_ note: Note) { notes.withLock { $0.append(note) } }

  /// Has what was noted told.
  func tellNotes() {
    let notes = notes.withLock { notes in
      defer { notes.removeAll(keepingCapacity: true) }
      return notes
    }
    if notes.isEmpty { return }
    let now = TimeSpec.monotonic
    pending.withLock { pending in
      for note in notes {
        switch note {
        case .name(let place, let news): pending.add(news, at: place, now: now)
        case .renaming(let source, let target): pending.addRenaming(from: source, to: target)
        case .directory(let directory): pending.add(directory: directory, now: now)
        }
      }
    }
    eventFD.signal()
  }

  /// What came of it all since the mount began.
  var figures: AnnouncementFigures {
    AnnouncementFigures(
      told: told.count, coalesced: pending.withLock { $0.coalesced } + covered.count, dropped: dropped.count,
      lastDrop: state.withLock { $0.lastDrop })
  }

  // MARK: - The thread

  private func run(_ volume: Volume, _ kernel: any KernelNotifier) {
    // Until when the mount is to be left alone for the times that it was held.
    var rest: Int64 = 0
    while !state.withLock({ $0.isOver }) {
      let now = TimeSpec.monotonic
      let debt = rest - now.microseconds - Self.credit
      if debt > 0 {
        usleep(UInt32(clamping: debt))
        continue
      }
      let (items, time) = pending.withLock { ($0.take(Self.batch, now: now), $0.timeout(now: now)) }
      if items.isEmpty {
        eventFD.wait(or: -1, milliseconds: time)
      } else {
        tell(items, volume, kernel)
        let end = TimeSpec.monotonic.microseconds
        rest = max(rest, end) + (end - now.microseconds) * (Self.parts - 1)
      }
    }
    dropped.add(UInt64(pending.withLock { $0.removeAll() }))
  }

  private func tell(_ items: [CoalescingEventQueue.Item], _ volume: Volume, _ kernel: any KernelNotifier) {
    var known: Set<DueEvent> = []
    let due = items.flatMap { volume.dueEvents($0) }.filter { known.insert($0).inserted }
    if due.isEmpty { return }
    do throws(Errno) {
      let replayer = try Replayer(volume, kernel, expectation, greeting: greeting)
      for event in due { tell(event, replayer) }
    } catch {
      drop(due.count, error)
    }
  }

  private func tell(_ event: DueEvent, _ replayer: Replayer) {
    // Before the kernel finds out by itself.
    if case .name(let place, _) = event { replayer.leave(place) }
    do throws(Errno) {
      switch event {
      case .directory(let directory): try replayer.touch(directory)
      case .renaming(let source, let target):
        replayer.leave(target)
        try replayer.rename(source, to: target)
      case .name(let place, .appeared(let kind)): try appear(place, kind, replayer)
      case .name(let place, .disappeared(let isDirectory)):
        try replayer.disappear(place, isDirectory: isDirectory)
      case .name(let place, .written): try replayer.write(place)
      case .name(let place, .modified): try replayer.write(place, isClosed: false)
      case .name(let place, .closed): try replayer.write(place, isModified: false)
      case .name(let place, .attributes): try replayer.touch(place)
      }
      told.add(1)
    } catch {
      // The directory is gone by now, or the name is: that has been told, or will be.
      if error == .noSuchFileOrDirectory || error == .notDirectory { covered.add(1) } else { drop(1, error) }
    }
  }

  private func appear(_ place: EntryKey, _ kind: FileKind, _ replayer: Replayer) throws(Errno) {
    do throws(Errno) { try replayer.appear(place, kind) } catch {
      // Somebody has found the directory already.
      guard kind == .directory, error == .fileExists else { throw error }
      try replayer.touch(place)
    }
  }

  private func drop(_ count: Int, _ reason: Errno) {
    dropped.add(UInt64(count))
    let words = reason == .staleFileHandle ? "the mount's path leads elsewhere" : reason.description
    state.withLock { $0.lastDrop = words }
  }
}

/// What became of the changes that watchers of the mount were to be told of.
struct AnnouncementFigures {
  /// Events.
  let told: UInt64
  /// Changes for which other events stand.
  let coalesced: UInt64
  /// Events that could not be had.
  let dropped: UInt64
  /// Why the last of these.
  let lastDrop: String?
}
