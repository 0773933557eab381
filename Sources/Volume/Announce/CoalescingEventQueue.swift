import Containers
import Fuse
import Posix

/// The changes that are to be announced to watchers of the mount. Changes of one name are coalesced. The names
/// of a directory are rate-limited; those beyond the limit become one event of the directory at the end of
/// its window.
///
/// Invariant: every key of `names` or `takenNames` and every directory of `directories` is in `queue` once, and
/// nothing else is.
struct CoalescingEventQueue {
  enum Item: Equatable {
    case name(EntryKey, NameChange)
    case renaming(EntryKey, NameChange, to: EntryKey, NameChange)
    case directory(NodeID)
  }
  private enum Subject {
    case name(EntryKey)
    case directory(NodeID)
  }
  /// A rate-limit window of a directory: one second from the first change.
  private struct Window {
    let end: TimeSpec
    var nameCount = 0
    /// Whether names were omitted, so that the directory is announced at the end of the window.
    var hasOmissions = false
  }

  /// The names of a directory that are announced per window; the guide WatchingTheMount says what they cost.
  static let namesPerWindow = 1000
  static let capacity = 65_536

  private var names: [EntryKey: NameChange] = [:]
  /// The names whose changes were taken before their turn, with a renaming.
  private var takenNames: Set<EntryKey> = []
  private var directories: Set<NodeID> = []
  /// The new names of renamed files by their old names, and the reverse.
  private var targets: [EntryKey: EntryKey] = [:]
  private var sources: [EntryKey: EntryKey] = [:]
  private var queue = Queue<Subject>()
  private var windows: [NodeID: Window] = [:]
  /// The directories of `windows`, ordered by the windows' ends.
  private var windowOrder = Queue<NodeID>()
  private var windowsWithOmissions = 0
  private(set) var coalesced: UInt64 = 0

  var count: Int { names.count + directories.count }
  /// How many slots the queue occupies, for tests.
  var slots: Int { queue.slots }

  mutating func add(_ change: NameChange, at key: EntryKey, now: TimeSpec) {
    if names[key]?.merge(change) == nil, admit(key.parent, now) {
      names[key] = change
      if takenNames.remove(key) == nil { queue.enqueue(.name(key)) }
    } else {
      coalesced += 1
    }
  }

  mutating func add(directory: NodeID, now: TimeSpec) {
    if !directories.contains(directory), admit(directory, now) {
      enqueue(directory)
    } else {
      coalesced += 1
    }
  }

  /// Joins the changes of two names to a renaming. Both were added before, unless they were omitted.
  mutating func addRenaming(from source: EntryKey, to target: EntryKey) {
    guard names[source] != nil, names[target] != nil, source != target else { return }
    // The last renaming of a name counts.
    if let former = targets.updateValue(target, forKey: source) { sources[former] = nil }
    if let former = sources.updateValue(source, forKey: target), former != source { targets[former] = nil }
  }

  mutating func take(_ limit: Int, now: TimeSpec) -> [Item] {
    flushEndedWindows(now)
    var taken: [Item] = []
    while taken.count < limit, let subject = queue.dequeue() {
      if let item = take(subject) { taken.append(item) }
    }
    return taken
  }

  /// - Returns: the number of items that were removed.
  mutating func removeAll() -> Int {
    defer { self = CoalescingEventQueue(coalesced: coalesced) }
    return count
  }

  /// Milliseconds until the next window with omissions ends; -1 if there is none.
  func timeout(now: TimeSpec) -> CInt {
    guard windowsWithOmissions > 0, let next = windowOrder.first, let window = windows[next] else {
      return -1
    }
    return window.end.milliseconds(since: now) + 1
  }

  private mutating func take(_ subject: Subject) -> Item? {
    switch subject {
    case .directory(let directory): return directories.remove(directory).map { .directory($0) }
    case .name(let key):
      guard let change = names.removeValue(forKey: key) else {
        takenNames.remove(key)
        return nil
      }
      // A renaming is taken with the first of its names.
      if let target = targets.removeValue(forKey: key) {
        sources[target] = nil
        if let other = takeEarly(target) { return .renaming(key, change, to: target, other) }
      } else if let source = sources.removeValue(forKey: key) {
        targets[source] = nil
        if let other = takeEarly(source) { return .renaming(source, other, to: key, change) }
      }
      return .name(key, change)
    }
  }

  private mutating func takeEarly(_ key: EntryKey) -> NameChange? {
    guard let change = names.removeValue(forKey: key) else { return nil }
    takenNames.insert(key)
    return change
  }

  private mutating func enqueue(_ directory: NodeID) {
    if directories.insert(directory).inserted { queue.enqueue(.directory(directory)) }
  }

  private var isFull: Bool { names.count + takenNames.count >= Self.capacity }

  /// Counts a change against its directory's window.
  /// - Returns: false if it exceeds the limit; the directory is then announced at the end of the window.
  private mutating func admit(_ directory: NodeID, _ now: TimeSpec) -> Bool {
    flushEndedWindows(now)
    guard var window = windows[directory] else {
      let isFull = isFull
      windows[directory] = Window(
        end: now.advanced(byMilliseconds: 1000), nameCount: 1, hasOmissions: isFull)
      if isFull { windowsWithOmissions += 1 }
      windowOrder.enqueue(directory)
      return !isFull
    }
    defer { windows[directory] = window }
    if window.nameCount < Self.namesPerWindow, !isFull {
      window.nameCount += 1
      return true
    }
    if !window.hasOmissions { windowsWithOmissions += 1 }
    window.hasOmissions = true
    return false
  }

  /// Removes the windows that have ended and enqueues the directories of those with omissions.
  private mutating func flushEndedWindows(_ now: TimeSpec) {
    while let directory = windowOrder.first, let window = windows[directory], window.end <= now {
      _ = windowOrder.dequeue()
      windows[directory] = nil
      if window.hasOmissions {
        windowsWithOmissions -= 1
        enqueue(directory)
      }
    }
  }
}
