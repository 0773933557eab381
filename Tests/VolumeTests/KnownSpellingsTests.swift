import Fuse
import Posix
import TestSupport
import Testing

@testable import Volume

@Suite struct KnownSpellingsTests {
  private static func key(_ directory: Int, _ name: String) -> EntryKey {
    EntryKey(parent: NodeID(rawValue: UInt64(directory)), name: Array(name.utf8))
  }

  @Test("what was added last is known, also to a successor", arguments: 0..<10)
  func lastOnes(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let shared = try SharedMemory(name: "test", size: NodeMemory.size)
    var known = KnownSpellings(capacity: 20, memory: NodeMemory(shared))
    var model: [EntryKey] = []
    for _ in 0..<2000 {
      let directory = random.number(1...3)
      if random.percent(2) {
        let node = NodeID(rawValue: UInt64(directory))
        let present = known.all(in: node)
        known.removeAll(in: node)
        let expected = model.filter { $0.parent.rawValue == UInt64(directory) }.map(\.name)
        #expect(Set(present) == Set(expected) && known.all(in: node).isEmpty)
        model.removeAll { $0.parent.rawValue == UInt64(directory) }
      } else if random.percent(2) {
        // The place of the next one is not kept; so the next ones may replace others.
        known = KnownSpellings(capacity: 20, memory: NodeMemory(shared))
      } else {
        let key = Self.key(
          directory, random.pick(["Name", "name", "NAME", "Other", "OTHER"]) + "\(random.number(0...9))")
        let evicted = known.add(key)
        if let evicted {
          #expect(model.contains(evicted))
          model.removeAll { $0 == evicted }
        }
        if !model.contains(key) { model.append(key) }
      }
      #expect(known.count == model.count && model.count <= 20)
      for directory in 1...3 {
        let wanted = model.filter {
          $0.parent.rawValue == UInt64(directory) && $0.name.first == UInt8(ascii: "n")
        }
        for key in wanted {
          let upper = String(decoding: key.name, as: UTF8.self).uppercased()
          #expect(known.spellings(of: Array(upper.utf8), in: key.parent).contains(key.name))
        }
      }
    }
  }

  @Test("a spelling that is known already evicts none")
  func repeated() {
    let known = KnownSpellings(capacity: 2)
    #expect(known.add(Self.key(1, "a")) == nil)
    #expect(known.add(Self.key(1, "A")) == nil)
    #expect(known.add(Self.key(1, "a")) == nil)
    #expect(known.add(Self.key(1, "b")) == Self.key(1, "a"))
    #expect(known.spellings(of: Array("a".utf8), in: NodeID(rawValue: 1)) == [Array("A".utf8)])
  }
}
