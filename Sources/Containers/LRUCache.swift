/// Values by key within a limit of count and cost; the least recently used ones are evicted.
public struct LRUCache<Key: Hashable, Value> {
  fileprivate struct Entry {
    let key: Key
    let value: Value
    let cost: Int
  }

  private let countLimit: Int
  private let costLimit: Int
  private var slots: [Key: UInt32] = [:]
  private var entries = Slab<Entry>()
  private var order = LRUList()
  /// The sum of the values' costs.
  public private(set) var cost = 0

  /// An empty cache.
  /// - Parameters:
  ///   - countLimit: the most values.
  ///   - costLimit: the largest sum of their costs; a single value may exceed it.
  public init(countLimit: Int, costLimit: Int = .max) {
    self.countLimit = countLimit
    self.costLimit = costLimit
  }

  /// How many values there are.
  public var count: Int { entries.count }

  /// The value of a key, which becomes the most recently used one.
  public mutating func value(for key: Key) -> Value? {
    guard let slot = slots[key] else { return nil }
    order.touch(slot)
    return entries[slot]?.value
  }

  /// Adds a value, or replaces the key's former one, and evicts what exceeds the limits.
  public mutating func insert(_ value: Value, for key: Key, cost: Int = 0) {
    remove(key)
    let slot = entries.insert(Entry(key: key, value: value, cost: cost))
    slots[key] = slot
    order.touch(slot)
    self.cost += cost
    while count > countLimit || (self.cost > costLimit && count > 1), let oldest = entries[order.oldest] {
      remove(oldest.key)
    }
  }

  /// Removes the value of a key and returns it.
  @discardableResult
  public mutating func remove(_ key: Key) -> Value? {
    guard let slot = slots.removeValue(forKey: key), let entry = entries.remove(slot) else { return nil }
    order.remove(slot)
    cost -= entry.cost
    return entry.value
  }
}

extension LRUCache.Entry: Sendable where Key: Sendable, Value: Sendable {}
extension LRUCache: Sendable where Key: Sendable, Value: Sendable {}
