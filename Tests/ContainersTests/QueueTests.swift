import TestSupport
import Testing

@testable import Containers

@Suite struct QueueTests {
  @Test("elements leave in the order in which they came", arguments: 0..<20)
  func random(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var queue = Queue<Int>()
    var model: [Int] = []
    for number in 0..<3000 {
      // It grows for a while, then it shrinks.
      if random.percent(number / 500 % 2 == 0 ? 70 : 30) {
        queue.enqueue(number)
        model.append(number)
      } else {
        #expect(queue.dequeue() == (model.isEmpty ? nil : model.removeFirst()), "seed \(seed)")
      }
      if random.percent(1), random.percent(20) {
        queue = Queue()
        model = []
      }
      #expect(queue.count == model.count, "seed \(seed)")
      #expect(queue.isEmpty == model.isEmpty)
      #expect(queue.first == model.first, "seed \(seed)")
    }
  }

  @Test("a queue that is never empty does not grow")
  func bound() {
    var queue = Queue<Int>()
    var (isOrdered, most) = (true, 0)
    for number in 0..<100_000 {
      queue.enqueue(number)
      if number >= 100, queue.dequeue() != number - 100 { isOrdered = false }
      most = max(most, queue.slots)
    }
    #expect(isOrdered && most <= 202)
    while queue.dequeue() != nil {}
    #expect(queue.slots == 0)
  }
}

@Suite struct SlabTests {
  @Test("an element keeps its slot, and free slots are used again", arguments: 0..<20)
  func random(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var slab = Slab<Int>()
    var model: [UInt32: Int] = [:]
    for number in 0..<2000 {
      if model.count < 20, random.percent(60) {
        let slot = slab.insert(number)
        #expect(model[slot] == nil && (1...20).contains(slot), "seed \(seed)")
        model[slot] = number
      } else if let slot = model.keys.min() {
        #expect(slab.remove(slot) == model.removeValue(forKey: slot), "seed \(seed)")
        #expect(slab.remove(slot) == nil)
      }
      #expect(slab.count == model.count, "seed \(seed)")
      for (slot, element) in model { #expect(slab[slot] == element, "seed \(seed)") }
    }
  }
}
