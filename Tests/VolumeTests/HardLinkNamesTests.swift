import Fuse
import TestSupport
import Testing

@testable import Volume

@Suite struct HardLinkNamesTests {
  private static func key(_ parent: Int, _ name: Int) -> EntryKey {
    EntryKey(parent: NodeID(rawValue: UInt64(parent)), name: Array("name \(name)".utf8))
  }

  @Test("the names in a directory, as nodes gain and lose them", arguments: 0..<10)
  func names(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var links = HardLinkNames()
    var model: [UInt32: Set<EntryKey>] = [:]
    for _ in 0..<500 {
      let (slot, key) = (UInt32(random.number(1...8)), Self.key(random.number(1...4), random.number(1...6)))
      if random.percent(60) {
        links.add(slot, at: key)
        model[slot, default: []].insert(key)
      } else if random.percent(80) {
        #expect(links.remove(slot, at: key) == (model[slot]?.remove(key) != nil))
      } else {
        links.remove(slot)
        model[slot] = nil
      }
      let keys = model.values.reduce(into: Set<EntryKey>()) { $0.formUnion($1) }
      for parent in 1...4 {
        let id = NodeID(rawValue: UInt64(parent))
        #expect(links.names(in: id) == Set(keys.filter { $0.parent == id }.map(\.name)))
      }
      for (slot, keys) in model { #expect(links.first(of: slot).map(keys.contains) ?? keys.isEmpty) }
    }
  }

  @Test("asking every directory for its names takes time in proportion to them")
  func linear() throws {
    try LinearTime.check(name: "names in directories of 10", largest: 200_000) { size in
      var links = HardLinkNames()
      for index in 0..<size { links.add(UInt32(index + 1), at: Self.key(index / 10, index)) }
      return (links, size)
    } parse: { links, size in
      var count = 0
      for parent in 0...size / 10 { count += links.names(in: NodeID(rawValue: UInt64(parent))).count }
      #expect(count == size)
    }
  }
}
