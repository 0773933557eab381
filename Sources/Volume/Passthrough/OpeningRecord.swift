import Fuse
import Posix
import Synchronization

/// The nodes that programs have open in a mount with passthrough, in shared memory. The kernel keeps them open, with their
/// backing files, when this process dies, and demands the same backing file of whatever opens such a node again.
///
/// It also sends the requests again to which this process has not replied. So what is counted for a request is recorded with
/// the request's number until the reply has been sent, and a successor does not count it twice (`OpeningRecord+Requests`).
struct OpeningRecord: @unchecked Sendable {
  /// How often a node is open; one word in memory, so that it changes whole.
  struct Counts: Equatable {
    var all = 0
    /// How many of these may write to the backing file.
    var writers = 0
    /// Whether a program may have the file mapped that has closed it.
    var mayBeMapped = false

    private static let limit = 1 << 31 - 1

    init(all: Int = 0, writers: Int = 0, mayBeMapped: Bool = false) {
      (self.all, self.writers, self.mayBeMapped) = (all, writers, mayBeMapped)
    }

    fileprivate init(word: UInt64) {
      all = Int(word & UInt64(Self.limit))
      writers = Int(word >> 31 & UInt64(Self.limit))
      mayBeMapped = word >> 62 & 1 != 0
    }

    fileprivate var word: UInt64 {
      UInt64(min(max(0, all), Self.limit)) | UInt64(min(max(0, writers), Self.limit)) << 31
        | (mayBeMapped ? 1 << 62 : 0)
    }

    /// Whether nothing is left to be known of the node.
    var isNone: Bool { word == 0 }
  }

  struct Opening {
    let slot: Int
    let node: NodeID
    /// nil for the page cache.
    let file: BackingFile?
    let counts: Counts
  }

  private struct Entry {
    var node: UInt64
    /// `Counts`; 0 if the entry is free.
    var counts: UInt64
    /// 0 for the page cache.
    var file: Int32
  }

  /// A request that has been counted, and may not have been replied to.
  private struct CountedRequest {
    /// The request's number; 0 if the entry is free.
    var number: UInt64
    /// What the slot counts with it.
    var counts: UInt64
    var slot: Int32
    /// The backing file that is not used from then on; 0 for none.
    var ended: Int32
    var isCounted: Bool
  }

  private static let region = SharedRegions.openings
  private static let requestRegion =
    region.upperBound - requestLimit * MemoryLayout<CountedRequest>.stride..<region.upperBound
  /// Beyond the threads that may work on one.
  private static let requestLimit = 512
  /// Nodes beyond are not recorded.
  static let capacity =
    (requestRegion.lowerBound - region.lowerBound) / MemoryLayout<Entry>.stride - 1

  /// How many entries have ever been used.
  private let used: UnsafeMutablePointer<UInt64>
  private let entries: UnsafeMutablePointer<Entry>
  private let requests: UnsafeMutablePointer<CountedRequest>
  private var free: [Int] = []
  private var freeRequests: [Int] = []
  /// Where the requests are that have been counted and not replied to, also those of a predecessor.
  private var counted: [UInt64: Int] = [:]

  /// Completes what a predecessor was about to count.
  init(_ memory: SharedMemory) {
    used = memory.values(of: UInt64.self, at: Self.region.lowerBound)
    entries = memory.values(of: Entry.self, at: Self.region.lowerBound + MemoryLayout<Entry>.stride)
    requests = memory.values(of: CountedRequest.self, at: Self.requestRegion.lowerBound)
    for index in 0..<Self.requestLimit {
      let request = requests[index]
      if request.number == 0 {
        freeRequests.append(index)
        continue
      }
      let slot = Int(request.slot)
      if !request.isCounted, slots.contains(slot) { entries[slot].counts = request.counts }
      requests[index].isCounted = true
      counted[request.number] = index
    }
    free = slots.filter { entries[$0].counts == 0 }
  }

  private var slots: Range<Int> { 0..<min(Int(clamping: used.pointee), Self.capacity) }

  /// What a predecessor has recorded.
  var all: [Opening] {
    slots.filter { entries[$0].counts != 0 }.map { slot in
      let (entry, counts) = (entries[slot], Counts(word: entries[slot].counts))
      return Opening(
        slot: slot, node: NodeID(rawValue: entry.node),
        file: entry.file > 0 && counts.all > 0 ? BackingFile(rawValue: entry.file) : nil, counts: counts)
    }
  }

  /// Takes a place for a node that is about to be opened.
  /// - Returns: nil if there is no room.
  mutating func add(_ node: NodeID) -> Int? {
    guard let slot = free.popLast() ?? next() else { return nil }
    entries[slot].node = node.rawValue
    return slot
  }

  private func next() -> Int? {
    let slot = slots.upperBound
    if slot == Self.capacity { return nil }
    entries[slot].counts = 0
    used.pointee += 1
    return slot
  }

  /// Records the backing file of a node that has none, before it is opened.
  func setFile(_ file: BackingFile?, at slot: Int) { entries[slot].file = file?.rawValue ?? 0 }

  /// Records how often a node is open.
  /// - Parameters:
  ///   - request: the request that this is for; nil for none.
  ///   - ended: the backing file that is not used from now on.
  mutating func set(_ counts: Counts, at slot: Int, for request: UInt64?, ended: BackingFile? = nil) {
    var place: Int?
    if let request { place = self.place(for: request) }
    if let place, let request {
      requests[place].counts = counts.word
      requests[place].slot = Int32(slot)
      requests[place].ended = ended?.rawValue ?? 0
      requests[place].isCounted = false
      // What it says holds as soon as it has a number.
      atomicMemoryFence(ordering: .sequentiallyConsistent)
      requests[place].number = request
    }
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    entries[slot].counts = counts.word
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    if let place { requests[place].isCounted = true }
    if counts.isNone { free.append(slot) }
  }
}

/// Requests that have been counted.
extension OpeningRecord {
  private mutating func place(for request: UInt64) -> Int? {
    if let place = counted[request] { return place }
    if let oldest = counted.keys.min(), freeRequests.isEmpty { finish(oldest) }
    guard let place = freeRequests.popLast() else { return nil }
    counted[request] = place
    return place
  }

  /// Whether a request has been counted, by this process or by a predecessor.
  func isCounted(_ request: UInt64) -> Bool { counted[request] != nil }

  /// The backing file that was not used any more after a request, which a predecessor may not have unregistered.
  func fileEnded(by request: UInt64) -> BackingFile? {
    guard let place = counted[request], requests[place].ended > 0 else { return nil }
    return BackingFile(rawValue: requests[place].ended)
  }

  /// Forgets a request once the reply has been sent.
  mutating func finish(_ request: UInt64) {
    guard let place = counted.removeValue(forKey: request) else { return }
    requests[place].number = 0
    freeRequests.append(place)
  }
}

/// For tests.
extension OpeningRecord {
  /// Makes a request look as if the process had died before it was counted.
  func rewind(_ request: UInt64, to counts: Counts, at slot: Int) {
    guard let place = counted[request] else { return }
    requests[place].isCounted = false
    entries[slot].counts = counts.word
  }
}
