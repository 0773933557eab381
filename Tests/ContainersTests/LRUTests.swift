import TestSupport
import Testing

@testable import Containers

@Suite struct LRUTests {
  @Test("a list has the slots in the order of their last use", arguments: 0..<20)
  func list(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var list = LRUList()
    /// Oldest first.
    var model: [UInt32] = []
    for _ in 0..<2000 {
      let slot = UInt32(random.number(1...40))
      #expect(list.contains(slot) == model.contains(slot), "seed \(seed)")
      switch random.number(0...5) {
      case 0:
        list.remove(slot)
        model.removeAll { $0 == slot }
      case 1:
        let oldest = list.oldest
        #expect(oldest == (model.isEmpty ? 0 : model.removeFirst()), "seed \(seed)")
        list.remove(oldest)
      default:
        list.touch(slot)
        model.removeAll { $0 == slot }
        model.append(slot)
      }
      #expect(list.oldest == model.first ?? 0, "seed \(seed)")
      #expect(list.newest == model.last ?? 0, "seed \(seed)")
    }
    var slot = list.newest
    for expected in model.reversed() {
      #expect(slot == expected, "seed \(seed)")
      slot = list.older(than: slot)
    }
    #expect(slot == 0)
  }

  @Test("a cache holds what was used last, within its limits", arguments: 0..<20)
  func cache(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let (countLimit, costLimit) = (random.number(1...20), random.number(1...100))
    var cache = LRUCache<Int, Int>(countLimit: countLimit, costLimit: costLimit)
    /// Oldest first.
    var model: [(key: Int, value: Int, cost: Int)] = []
    for value in 0..<2000 {
      let key = random.number(0...30)
      let index = model.firstIndex { $0.key == key }
      switch random.number(0...3) {
      case 0:
        #expect(cache.remove(key) == index.map { model.remove(at: $0).value }, "seed \(seed)")
      case 1:
        #expect(cache.value(for: key) == index.map { model[$0].value }, "seed \(seed)")
        if let index { model.append(model.remove(at: index)) }
      default:
        let cost = random.number(0...30)
        cache.insert(value, for: key, cost: cost)
        if let index { model.remove(at: index) }
        model.append((key, value, cost))
        while model.count > countLimit || (model.reduce(0) { $0 + $1.cost } > costLimit && model.count > 1) {
          model.removeFirst()
        }
      }
      #expect(cache.count == model.count, "seed \(seed)")
      #expect(cache.cost == model.reduce(0) { $0 + $1.cost }, "seed \(seed)")
    }
  }
}
