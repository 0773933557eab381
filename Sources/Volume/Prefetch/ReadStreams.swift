import Fuse

/// Detects that a program reads files in the order of a walk: what comes next can then be prefetched across directories.
///
/// The order is that of lookups, which for a program that lists before it reads is the order of its listings. What is
/// prefetched is not asked for, so a READ shows how far the program has come, and that the prefetcher was too late.
struct ReadStreams {
  struct Stream {
    /// The last file that the kernel has asked for.
    var last: NodeID
    /// How often in a row the next READ was in the next directory of the walk; saturating.
    var crossings = 0
  }

  /// READs in successive directories after which those to come are prefetched.
  static let threshold = 2
  static let mostCrossings = 4
  /// The most entries from one READ to the next in a stream. What was prefetched is between them.
  static let reach = 192
  /// Files that a program may leave out in a row.
  static let mostOmitted = 2
  /// Files that are prefetched beyond the last READ, at first and at most.
  static let (firstWindow, window) = (16, 64)
  /// Files after a READ that are not prefetched: the program asks for them before they can be there.
  static let skipped = 1
  /// Streams at a time.
  private static let capacity = 2

  /// The latest one is the last.
  private var streams: [Stream] = []
  /// Where to prefetch; nil while no stream is worth it.
  private var cursor: NodeID?
  private var remaining = 0
  /// Whether there was a READ since the last call of `next`.
  private(set) var hasMoved = false
  private(set) var isRunning = false

  /// Records a READ at the beginning of a file.
  /// - Returns: whether it continues a stream that is prefetched, and whether a worker must begin to do that.
  mutating func record(_ slot: UInt32, in table: NodeTable) -> (isStream: Bool, isIdle: Bool) {
    let node = table.number(of: slot)
    guard let index = streams.lastIndex(where: { Self.follows($0.last, slot, table) }) else {
      if streams.count == Self.capacity { streams.removeFirst() }
      streams.append(Stream(last: node))
      return (false, false)
    }
    var stream = streams.remove(at: index)
    if let former = try? table.slot(of: stream.last), table[former].parent != table[slot].parent {
      stream.crossings = min(stream.crossings + 1, Self.mostCrossings)
    }
    stream.last = node
    streams.append(stream)
    if stream.crossings < Self.threshold { return (false, false) }
    hasMoved = true
    defer { isRunning = true }
    return (true, !isRunning)
  }

  /// Whether a file comes soon after the last one of a stream, with hardly one between them that was not read.
  private static func follows(_ last: NodeID, _ slot: UInt32, _ table: NodeTable) -> Bool {
    guard let former = try? table.slot(of: last) else { return false }
    if former == slot { return true }
    var (walk, omitted) = (WalkOrder(after: former, steps: reach), 0)
    while omitted <= mostOmitted, let next = walk.next(in: table) {
      if next == slot { return true }
      if table[next].isUnread { omitted += 1 }
    }
    return false
  }

  /// The files to prefetch next, at most `count`.
  /// - Returns: nil at the end of the window; then no worker prefetches.
  mutating func next(_ count: Int, largest: UInt64, in table: NodeTable) -> [UInt32]? {
    var skipped = 0
    if hasMoved, let stream = streams.last {
      (cursor, hasMoved, skipped) = (stream.last, false, Self.skipped)
      remaining = stream.crossings < Self.mostCrossings ? Self.firstWindow : Self.window
    }
    guard remaining > 0, let start = cursor.flatMap({ try? table.slot(of: $0) }) else { return stop() }
    var (walk, found) = (WalkOrder(after: start, steps: Self.reach), [UInt32]())
    while found.count < min(count, remaining), let next = walk.next(in: table) {
      guard table[next].isPrefetchable(upTo: largest) else { continue }
      if skipped > 0 { skipped -= 1 } else { found.append(next) }
    }
    guard let last = found.last else { return stop() }
    cursor = table.number(of: last)
    remaining -= found.count
    return found
  }

  private mutating func stop() -> [UInt32]? {
    isRunning = false
    return nil
  }
}

/// The entries that a walk visits after one: a directory before what is in it, and that before what follows it, each in
/// the order of lookup.
struct WalkOrder {
  private var slot: UInt32
  /// How many entries, also those passed on the way up, may be visited; the caller holds the table's lock.
  private var steps: Int

  init(after slot: UInt32, steps: Int) { (self.slot, self.steps) = (slot, steps) }

  mutating func next(in table: NodeTable) -> UInt32? {
    // What was not listed, the kernel need not know.
    if let state = table[slot].directory, state.wasListed, state.oldestChild != 0 {
      steps -= 1
      slot = state.oldestChild
      return steps < 0 ? nil : slot
    }
    while slot != NodeTable.root, steps > 0 {
      steps -= 1
      let next = table[slot].previousSibling
      if next != 0 {
        slot = next
        return slot
      }
      slot = table[slot].parent
    }
    return nil
  }
}
