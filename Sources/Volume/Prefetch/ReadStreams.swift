import Fuse
import Posix

/// Detects that a program reads files in the order of a walk: what comes next can then be prefetched across directories.
///
/// The order is that of lookups, which for a program that lists before it reads is the order of its listings. What is
/// prefetched is not asked for, so a READ shows how far the program has come, and that the prefetcher was too late.
///
/// Invariants: `taken`, `nearby` and `share` have no file in common; `taken` has files exactly while the worker runs, and
/// only then is it outdated; the cursor is within the window.
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
  /// READs that prefetch nothing after one that took long.
  static let pause = 64
  /// Streams at a time.
  private static let capacity = 2

  /// The latest one is the last.
  private var streams: [Stream] = []
  /// The entry up to which files were taken since the last READ of a stream; nil while no stream is worth it.
  private var cursor: NodeID?
  /// How many files from the last READ to the cursor there are, and how many there may be.
  private var (distance, limit) = (0, 0)
  /// The files that the worker prefetches now.
  var taken: [NodeID] = []
  /// The files near a READ that continues no stream, which the worker prefetches now.
  private var nearby: [NodeID] = []
  /// The files that the thread which answers a READ prefetches now, until it has stored them.
  var share: [NodeID] = []
  /// The files that this thread has left to the worker, since prefetching took it too long.
  private var left: [NodeID] = []
  /// How many of the next READs prefetch nothing, since an earlier one took too long.
  private var pausing = 0
  /// Whether the worker prefetches.
  private(set) var isRunning = false
  /// Whether the last READ was beyond what the worker prefetches.
  private(set) var isOutdated = false

  /// Records a READ at the beginning of a file.
  /// - Returns: whether it continues a stream that is prefetched.
  mutating func record(_ slot: UInt32, in table: NodeTable) -> Bool {
    let node = table.number(of: slot)
    guard let index = streams.lastIndex(where: { Self.follows($0.last, slot, table) }) else {
      if streams.count == Self.capacity { streams.removeFirst() }
      streams.append(Stream(last: node))
      return false
    }
    var stream = streams.remove(at: index)
    if let former = try? table.slot(of: stream.last), table[former].parent != table[slot].parent {
      stream.crossings = min(stream.crossings + 1, Self.mostCrossings)
    }
    stream.last = node
    streams.append(stream)
    if stream.crossings < Self.threshold { return false }
    (cursor, distance, left) = (node, 0, [])
    if pausing > 0 { leaveOutNext(in: table) }
    limit = stream.crossings < Self.mostCrossings ? Self.firstWindow : Self.window
    // Where files take long, the first that is complete is stored before the program asks for it.
    isOutdated = !taken.isEmpty && (pausing > 0 || !isTaken(after: slot, table))
    return true
  }

  /// Leaves out the file that the program reads next, where files take long: it would not be prefetched by then, and both
  /// would read the same.
  private mutating func leaveOutNext(in table: NodeTable) {
    guard let start = cursor.flatMap({ try? table.slot(of: $0) }) else { return }
    var walk = WalkOrder(after: start, steps: Self.reach)
    while let next = walk.next(in: table) {
      cursor = table.number(of: next)
      if isPrefetchable(next, table) { return }
    }
  }

  /// Whether a program waits for a file's READ, as far as is known: its pages are locked until the reply.
  func isBeingRead(_ node: NodeID) -> Bool { streams.last?.last == node }

  /// Whether the worker prefetches a file, or one of those that come soon after it.
  private func isTaken(after slot: UInt32, _ table: NodeTable) -> Bool {
    if taken.contains(table.number(of: slot)) { return true }
    var walk = WalkOrder(after: slot, steps: Self.reach)
    while let next = walk.next(in: table) {
      if table[next].kind == .regular, taken.contains(table.number(of: next)) { return true }
    }
    return false
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

  /// The files that the worker prefetches next, at most `count`. Those that it took before are done.
  /// - Returns: nil at the end of the window; then the worker has ended.
  mutating func next(_ count: Int, in table: NodeTable) -> [UInt32]? {
    (taken, isOutdated) = ([], false)
    var files = takeLeft(count, in: table)
    files += take(count - files.count, bytes: .max, in: table) { _ in true }
    taken = files.map { table.number(of: $0) }
    isRunning = !files.isEmpty
    return files.isEmpty ? nil : files
  }

  /// The files that the thread prefetches that answers a READ, at most `count` and so many bytes. They follow each other,
  /// so the first that may not be taken is the end. None while another thread does the same, and after one took long.
  mutating func takeShare(
    _ count: Int, bytes: UInt64, in table: NodeTable, where mayTake: (UInt32) -> Bool
  ) -> [UInt32] {
    if !mayShare() { return [] }
    let files = take(count, bytes: bytes, in: table, where: mayTake)
    share = files.map { table.number(of: $0) }
    return files
  }

  /// The same for a READ that continues no stream: files near it in its directory, which need not follow each other.
  mutating func takeShare(
    near slot: UInt32, _ count: Int, bytes: UInt64, in table: NodeTable, where mayTake: (UInt32) -> Bool
  ) -> [UInt32] {
    if !mayShare() { return [] }
    var bytes = bytes
    let near = table.files(near: slot, count: count) { isPrefetchable($0, table) && mayTake($0) }
    let files = near.filter { file in
      guard let size = table[file].reportedSize, size <= bytes else { return false }
      bytes -= size
      return true
    }
    share = files.map { table.number(of: $0) }
    return files
  }

  private mutating func mayShare() -> Bool {
    if !share.isEmpty { return false }
    pausing = max(0, pausing - 1)
    return pausing == 0
  }

  /// Records that what `takeShare` returned is prefetched.
  /// - Parameter rest: what was left out, since a file took long; the worker prefetches that.
  mutating func finishShare(leaving rest: [NodeID] = [], wasSlow: Bool = false) {
    (share, left) = ([], rest)
    if wasSlow { pausing = Self.pause + 1 }
  }

  private mutating func takeLeft(_ count: Int, in table: NodeTable) -> [UInt32] {
    let next = left.prefix(count)
    left.removeFirst(next.count)
    return next.compactMap { try? table.slot(of: $0) }.filter { isPrefetchable($0, table) }
  }

  /// The files near a READ that the worker prefetches next, at most `count`. Those that it took before are done.
  mutating func takeNearby(_ slot: UInt32, _ count: Int, in table: NodeTable) -> [UInt32] {
    nearby = []
    let files = table.files(near: slot, count: count) { isPrefetchable($0, table) }
    nearby = files.map { table.number(of: $0) }
    return files
  }

  /// Records that what `takeNearby` returned is prefetched.
  mutating func finishNearby() { nearby = [] }

  private mutating func take(
    _ count: Int, bytes: UInt64, in table: NodeTable, where mayTake: (UInt32) -> Bool
  ) -> [UInt32] {
    guard let start = cursor.flatMap({ try? table.slot(of: $0) }) else { return [] }
    var (walk, found, bytes) = (WalkOrder(after: start, steps: Self.reach), [UInt32](), bytes)
    while found.count < count, distance < limit, let next = walk.next(in: table) {
      if isPrefetchable(next, table) {
        guard let size = table[next].reportedSize, size <= bytes, mayTake(next) else { break }
        bytes -= size
        found.append(next)
      }
      if table[next].kind == .regular { distance += 1 }
      cursor = table.number(of: next)
    }
    return found
  }

  private func isPrefetchable(_ slot: UInt32, _ table: NodeTable) -> Bool {
    guard table[slot].isPrefetchable(upTo: FilePrefetcher.largestFile) else { return false }
    let node = table.number(of: slot)
    return !taken.contains(node) && !share.contains(node) && !nearby.contains(node)
  }
}

extension ReadStreams: InvariantChecking {
  func brokenInvariant() -> String? {
    let all = taken + nearby + share
    if Set(all).count != all.count { return "a file is prefetched twice" }
    if isRunning == taken.isEmpty { return "the worker runs without files, or the reverse" }
    if isOutdated, !isRunning { return "outdated without a worker" }
    if streams.count > Self.capacity { return "\(streams.count) streams" }
    if streams.contains(where: { $0.crossings > Self.mostCrossings }) { return "too many crossings" }
    return distance <= limit || cursor == nil ? nil : "\(distance) files ahead of at most \(limit)"
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
