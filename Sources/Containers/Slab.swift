/// Elements in slots, which are indexes from 1 that an element keeps until it is removed. Free slots are reused;
/// slot 0 never has an element.
public struct Slab<Element> {
  @usableFromInline var elements: [Element?] = [nil]
  @usableFromInline var free: [UInt32] = []

  /// An empty slab.
  @inlinable public init() {}

  /// How many elements there are.
  @inlinable public var count: Int { elements.count - 1 - free.count }

  /// Adds an element and returns its slot.
  @inlinable
  public mutating func insert(_ element: Element) -> UInt32 {
    if let slot = free.popLast() {
      elements[Int(slot)] = element
      return slot
    }
    elements.append(element)
    return UInt32(elements.count - 1)
  }

  /// Removes the element in a slot; nil if the slot is free.
  @discardableResult @inlinable
  public mutating func remove(_ slot: UInt32) -> Element? {
    guard let element = elements[Int(slot)].take() else { return nil }
    free.append(slot)
    return element
  }

  /// Replaces the element in a slot that is not free, and returns the former one.
  @discardableResult @inlinable
  public mutating func replace(_ slot: UInt32, with element: Element) -> Element? {
    let former = elements[Int(slot)].take()
    elements[Int(slot)] = element
    return former
  }

  /// The element in a slot; nil if the slot is free.
  @inlinable public subscript(slot: UInt32) -> Element? { elements[Int(slot)] }
}

extension Slab: Sendable where Element: Sendable {}
