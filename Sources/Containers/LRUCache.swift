/// Values by key within a limit of count and cost; the least recently used ones are evicted.
public struct LRUCache<Key: Hashable, Value> {
  @usableFromInline
  struct Entry {
    @usableFromInline let key: Key
    @usableFromInline let value: Value
    @usableFromInline let cost: Int

    @inlinable
    init(key: Key, value: Value, cost: Int) { (self.key, self.value, self.cost) = (key, value, cost) }
  }

  @usableFromInline let countLimit: Int
  @usableFromInline let costLimit: Int
  @usableFromInline var slots: [Key: UInt32] = [:]
  @usableFromInline var entries = Slab<Entry>()
  @usableFromInline var order = LRUList()
  @usableFromInline var totalCost = 0

  /// An empty cache.
  /// - Parameters:
  ///   - countLimit: the most values.
  ///   - costLimit: the largest sum of their costs; a single value may exceed it.
  @inlinable
  public init(countLimit: Int, costLimit: Int = .max) {
    self.countLimit = countLimit
    self.costLimit = costLimit
  }

  /// The sum of the values' costs.
  @inlinable public var cost: Int { totalCost }

  /// How many values there are.
  @inlinable public var count: Int { entries.count }

  /// The value of a key, which becomes the most recently used one.
  @inlinable
  public mutating func value(for key: Key) -> Value? {
    guard let slot = slots[key] else { return nil }
    order.touch(slot)
    return entries[slot]?.value
  }

  /// The most recently used value.
  @inlinable public var newest: Value? { entries[order.newest]?.value }

  /// The least recently used value.
  @inlinable public var oldest: Value? { entries[order.oldest]?.value }

  /// Removes the least recently used value and returns it.
  @discardableResult @inlinable
  public mutating func removeOldest() -> Value? { entries[order.oldest].flatMap { remove($0.key) } }

  /// Adds a value, or replaces the key's former one, and evicts what exceeds the limits.
  @inlinable
  public mutating func insert(_ value: Value, for key: Key, cost: Int = 0) {
    let entry = Entry(key: key, value: value, cost: cost)
    let slot: UInt32
    if let present = slots[key] {
      slot = present
      totalCost -= entries.replace(slot, with: entry)?.cost ?? 0
    } else {
      slot = entries.insert(entry)
      slots[key] = slot
    }
    order.touch(slot)
    totalCost += cost
    while count > countLimit || (totalCost > costLimit && count > 1), let oldest = entries[order.oldest] {
      remove(oldest.key)
    }
  }

  /// Removes the value of a key and returns it.
  @discardableResult @inlinable
  public mutating func remove(_ key: Key) -> Value? {
    guard let slot = slots.removeValue(forKey: key), let entry = entries.remove(slot) else { return nil }
    order.remove(slot)
    totalCost -= entry.cost
    return entry.value
  }
}

extension LRUCache.Entry: Sendable where Key: Sendable, Value: Sendable {}
extension LRUCache: Sendable where Key: Sendable, Value: Sendable {}
