import Fuse
import Posix
import Synchronization

/// The nodes that programs have open in a mount with passthrough, in shared memory. The kernel keeps them open, with their
/// backing files, when this process dies, and demands the same backing file of whatever opens such a node again.
struct OpeningRecord: @unchecked Sendable {
  struct Opening {
    let slot: Int
    let node: NodeID
    /// nil for the page cache.
    let file: BackingFile?
    let count: UInt32
  }

  private struct Entry {
    var node: UInt64
    /// 0 for the page cache.
    var file: Int32
    /// How many times the node is open; 0 if the entry is free.
    var count: UInt32
  }

  private static let region = SharedRegions.openings
  /// Nodes beyond are not recorded.
  static let capacity = region.count / MemoryLayout<Entry>.stride - 1

  /// How many entries have ever been used.
  private let used: UnsafeMutablePointer<UInt64>
  private let entries: UnsafeMutablePointer<Entry>
  private var free: [Int] = []

  init(_ memory: SharedMemory) {
    used = memory.values(of: UInt64.self, at: Self.region.lowerBound)
    entries = memory.values(of: Entry.self, at: Self.region.lowerBound + MemoryLayout<Entry>.stride)
    free = slots.filter { entries[$0].count == 0 }
  }

  private var slots: Range<Int> { 0..<min(Int(clamping: used.pointee), Self.capacity) }

  /// What a predecessor has recorded.
  var all: [Opening] {
    slots.filter { entries[$0].count > 0 }.map { slot in
      let entry = entries[slot]
      return Opening(
        slot: slot, node: NodeID(rawValue: entry.node),
        file: entry.file > 0 ? BackingFile(rawValue: entry.file) : nil, count: entry.count)
    }
  }

  /// Records a node's first opening.
  /// - Returns: where; nil if there is no room.
  mutating func add(_ node: NodeID, _ file: BackingFile?) -> Int? {
    guard let slot = free.popLast() ?? next() else { return nil }
    entries[slot].node = node.rawValue
    entries[slot].file = file?.rawValue ?? 0
    // What it says holds as soon as it has a count.
    atomicMemoryFence(ordering: .releasing)
    entries[slot].count = 1
    return slot
  }

  private func next() -> Int? {
    let slot = slots.upperBound
    if slot == Self.capacity { return nil }
    used.pointee += 1
    return slot
  }

  /// - Parameter count: 0 once the node is closed.
  mutating func setCount(_ count: Int, at slot: Int) {
    entries[slot].count = UInt32(clamping: count)
    if count == 0 { free.append(slot) }
  }
}
