import Containers

/// The nodes whose changes no watch reports, in the order in which they were polled: those polled the longest ago come
/// first.
struct PollOrder {
  private var order = LRUList()
  private(set) var count = 0

  func contains(_ slot: UInt32) -> Bool { order.contains(slot) }

  /// Adds a node at the end, unless it is there.
  mutating func insert(_ slot: UInt32) {
    if order.contains(slot) { return }
    order.touch(slot)
    count += 1
  }

  mutating func remove(_ slot: UInt32) {
    guard order.contains(slot) else { return }
    order.remove(slot)
    count -= 1
  }

  /// The first node, which becomes the last one; 0 if there is none.
  mutating func next() -> UInt32 {
    let slot = order.oldest
    if slot != 0 { order.touch(slot) }
    return slot
  }

  /// Moves a node to the end.
  mutating func postpone(_ slot: UInt32) {
    if order.contains(slot) { order.touch(slot) }
  }
}
