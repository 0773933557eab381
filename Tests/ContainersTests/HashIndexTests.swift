import TestSupport
import Testing

@testable import Containers

@Suite struct HashIndexTests {
  @Test("slots are found by the hash that they were added with, whatever comes and goes", arguments: 0..<20)
  func random(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var index = seed % 2 == 0 ? HashIndex() : HashIndex(capacity: 100)
    var model: [UInt32: UInt32] = [:]
    // Few different hashes, of which some share a bucket.
    let hashes = (0..<40).map { _ in UInt32(random.number(0...9) << 16 | random.number(0...255)) }
    for hash in hashes { #expect(index.first(hash) { _ in true } == 0) }
    for _ in 0..<3000 {
      let slot = UInt32(random.number(1...600))
      if model[slot] == nil {
        let hash = try #require(hashes.randomElement(using: &random))
        index.insert(slot, hash)
        model[slot] = hash
      } else if random.percent(30) {
        index.remove(slot)
        model[slot] = nil
      }
    }
    for hash in Set(hashes) {
      let expected = model.filter { $0.value == hash }.keys.sorted()
      #expect(index.all(hash) { _ in true }.sorted() == expected, "seed \(seed)")
      for slot in expected { #expect(index.first(hash) { $0 == slot } == slot, "seed \(seed)") }
      #expect(index.first(hash) { _ in false } == 0)
    }
  }
}
