import TestSupport
import Testing

@testable import Volume

@Suite struct SmallSetTests {
  @Test("it has the same elements as a Set", arguments: 0..<10)
  func random(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var small: SmallSet<Int> = []
    var plain: Set<Int> = []
    for _ in 0..<200 {
      let element = random.number(0...3)
      switch random.number(0...9) {
      case 0...3:
        small.insert(element)
        plain.insert(element)
      case 4...8:
        small.remove(element)
        plain.remove(element)
      default:
        small = small.filter { $0 != element }
        plain = plain.filter { $0 != element }
      }
      #expect(small.elements == plain, "seed \(seed)")
      #expect(small.isEmpty == plain.isEmpty, "seed \(seed)")
      if case .many(let elements) = small { #expect(elements.count != 1, "seed \(seed)") }
    }
  }
}
