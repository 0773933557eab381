import Containers
import Fuse
import Posix

/// What happened to a name since watchers were last told of it.
struct NameChange: Equatable {
  /// The news among them count.
  var aspects: Invalidation.Aspects
  /// The layers in which it happened.
  var layers: Set<Int>

  mutating func add(_ other: NameChange) {
    aspects.formUnion(other.aspects)
    layers.formUnion(other.layers)
  }
}

/// What watchers are still to be told: each name once, however much happens to it meanwhile, and of a directory
/// where too much happens only that something did.
///
/// Invariant: every key of `names` and every directory of `directories` is in `line` once; a subject in `line`
/// that is in neither was dequeued together with another one.
struct CoalescingEventQueue {
  /// One thing to tell.
  enum Item: Equatable {
    /// Something happened to a name.
    case name(EntryKey, NameChange)
    /// A file went from one name to another.
    case renaming(EntryKey, NameChange, to: EntryKey, NameChange)
    /// Something happened in a directory.
    case directory(NodeID)
  }
  private enum Subject {
    case name(EntryKey)
    case directory(NodeID)
  }
  /// A second in the life of a directory.
  private struct Second {
    let end: TimeSpec
    var names = 0
    /// Whether names were left out, which its end makes good.
    var isOwing = false
  }

  /// Names of one directory that are told in a second; see the README for what this costs.
  static let namesPerSecond = 1000
  /// Names that wait at most, should nobody take them.
  static let most = 65_536

  private var names: [EntryKey: NameChange] = [:]
  private var directories: Set<NodeID> = []
  /// The new names of files by their old ones, and the other way round.
  private var targets: [EntryKey: EntryKey] = [:]
  private var sources: [EntryKey: EntryKey] = [:]
  private var line = Queue<Subject>()
  private var seconds: [NodeID: Second] = [:]
  /// The directories of `seconds`, in the order in which these end.
  private var ends = Queue<NodeID>()
  private var owing = 0
  /// How often something was left out because the same, or the directory, was to be told anyway.
  private(set) var coalesced: UInt64 = 0

  /// How many things wait.
  var count: Int { names.count + directories.count }

  /// Adds what happened to a name.
  mutating func add(_ news: NameChange, at place: EntryKey, now: TimeSpec) {
    if names[place]?.add(news) != nil {
      coalesced += 1
    } else if count(place.parent, now) {
      names[place] = news
      line.enqueue(.name(place))
    } else {
      coalesced += 1
    }
  }

  /// Adds that something happened in a directory.
  mutating func add(directory: NodeID, now: TimeSpec) {
    if directories.contains(directory) {
      coalesced += 1
    } else if count(directory, now) {
      add(directory)
    } else {
      coalesced += 1
    }
  }

  /// Notes that the file of a name, which goes, comes to another one; both names were added before, or are too
  /// many.
  mutating func addRenaming(from source: EntryKey, to target: EntryKey) {
    guard names[source] != nil, names[target] != nil, source != target else { return }
    // Of several renamings of a name, the last counts.
    if let former = targets.updateValue(target, forKey: source) { sources[former] = nil }
    if let former = sources.updateValue(source, forKey: target), former != source { targets[former] = nil }
  }

  /// Takes the oldest things out.
  mutating func take(_ limit: Int, now: TimeSpec) -> [Item] {
    flushEndedWindows(now)
    var taken: [Item] = []
    while taken.count < limit, let subject = line.dequeue() {
      if let item = take(subject) { taken.append(item) }
    }
    return taken
  }

  /// Drops everything.
  /// - Returns: how many things.
  mutating func removeAll() -> Int {
    defer { self = CoalescingEventQueue(coalesced: coalesced) }
    return count
  }

  /// Milliseconds until a directory is to be told of what was left out; -1 where there is none.
  func timeout(now: TimeSpec) -> CInt {
    guard owing > 0, let next = ends.first, let second = seconds[next] else { return -1 }
    return second.end.milliseconds(since: now) + 1
  }

  init() {}

  private init(coalesced: UInt64) { self.coalesced = coalesced }

  private mutating func take(_ subject: Subject) -> Item? {
    switch subject {
    case .directory(let directory): return directories.remove(directory).map { .directory($0) }
    case .name(let place):
      guard let news = names.removeValue(forKey: place) else { return nil }
      // Both names at once, where the first of them stands; the other one has lost its news.
      if let target = targets.removeValue(forKey: place) {
        sources[target] = nil
        if let other = names.removeValue(forKey: target) { return .renaming(place, news, to: target, other) }
      } else if let source = sources.removeValue(forKey: place) {
        targets[source] = nil
        if let other = names.removeValue(forKey: source) { return .renaming(source, other, to: place, news) }
      }
      return .name(place, news)
    }
  }

  private mutating func add(_ directory: NodeID) {
    if directories.insert(directory).inserted { line.enqueue(.directory(directory)) }
  }

  /// Counts something that is to be told of a directory.
  /// - Returns: false if that is too much; then the directory is told at the end of its second.
  private mutating func count(_ directory: NodeID, _ now: TimeSpec) -> Bool {
    flushEndedWindows(now)
    guard var second = seconds[directory] else {
      let isFull = names.count >= Self.most
      seconds[directory] = Second(end: now.advanced(byMilliseconds: 1000), names: 1, isOwing: isFull)
      if isFull { owing += 1 }
      ends.enqueue(directory)
      return !isFull
    }
    defer { seconds[directory] = second }
    if second.names < Self.namesPerSecond, names.count < Self.most {
      second.names += 1
      return true
    }
    if !second.isOwing { owing += 1 }
    second.isOwing = true
    return false
  }

  /// Directories whose second is over are told of what was left out.
  private mutating func flushEndedWindows(_ now: TimeSpec) {
    while let directory = ends.first, let second = seconds[directory], second.end <= now {
      _ = ends.dequeue()
      seconds[directory] = nil
      if second.isOwing {
        owing -= 1
        add(directory)
      }
    }
  }
}
