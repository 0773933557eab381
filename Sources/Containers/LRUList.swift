/// The order of use of slots, which are indexes from 1: a doubly linked list in an array of 8 bytes a slot, up to
/// the largest one. All operations take constant time.
public struct LRUList: Sendable {
  @usableFromInline
  struct Link: Sendable {
    /// The neighbours; 0 ends the list. Both are 0 in a slot that is not listed.
    @usableFromInline var newer: UInt32 = 0
    @usableFromInline var older: UInt32 = 0
    @usableFromInline init() {}
  }

  /// By slot.
  @usableFromInline var links: [Link] = []
  /// The most recently used slot; 0 if the list is empty.
  public private(set) var newest: UInt32 = 0
  /// The least recently used slot; 0 if the list is empty.
  public private(set) var oldest: UInt32 = 0

  /// An empty list.
  public init() {}

  /// Whether the slot is in the list.
  @inlinable
  public func contains(_ slot: UInt32) -> Bool {
    guard slot < links.count else { return false }
    return slot == newest || links[Int(slot)].newer != 0
  }

  /// The slot that was used last before the one given; 0 at the end.
  public func older(than slot: UInt32) -> UInt32 { links[Int(slot)].older }

  /// Makes a slot the most recently used one; adds it if it is not in the list.
  @inlinable @inline(__always)
  public mutating func touch(_ slot: UInt32) {
    if slot != newest { moveToFront(slot) }
  }

  /// Removes a slot if it is in the list.
  public mutating func remove(_ slot: UInt32) {
    guard contains(slot) else { return }
    let link = links[Int(slot)]
    if link.newer != 0 { links[Int(link.newer)].older = link.older } else { newest = link.older }
    if link.older != 0 { links[Int(link.older)].newer = link.newer } else { oldest = link.newer }
    links[Int(slot)] = Link()
  }

  @usableFromInline
  mutating func moveToFront(_ slot: UInt32) {
    remove(slot)
    while links.count <= slot { links.append(Link()) }
    links[Int(slot)].older = newest
    if newest != 0 { links[Int(newest)].newer = slot } else { oldest = slot }
    newest = slot
  }
}
