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
    /// Those that the kernel had to forget at some time.
    var gone: Set<EntryKey> = []
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
        let before = Set(model)
        known = KnownSpellings(capacity: 20, memory: NodeMemory(shared))
        model = (1...3).flatMap { directory in
          let node = NodeID(rawValue: UInt64(directory))
          return Set(known.all(in: node)).map { EntryKey(parent: node, name: $0) }
        }
        #expect(before.isSubset(of: model))
        #expect(Set(model).subtracting(before).isSubset(of: gone))
      } else {
        let key = Self.key(
          directory, random.pick(["Name", "name", "NAME", "Other", "OTHER"]) + "\(random.number(0...9))")
        let evicted = known.add(key)
        #expect(Set(evicted).isSubset(of: model))
        gone.formUnion(evicted)
        model.removeAll { evicted.contains($0) }
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
    #expect(known.add(Self.key(1, "a")).isEmpty)
    #expect(known.add(Self.key(1, "A")).isEmpty)
    #expect(known.add(Self.key(1, "a")).isEmpty)
    #expect(known.add(Self.key(1, "b")) == [Self.key(1, "a")])
    #expect(known.spellings(of: Array("a".utf8), in: NodeID(rawValue: 1)) == [Array("A".utf8)])
  }

  @Test("a successor replaces none while there is room, and knows for a while what had to go")
  func successors() throws {
    let shared = try SharedMemory(name: "test", size: NodeMemory.size)
    let keys = (0..<40).map { Self.key(1, "name\($0)") }
    // As many as there is room for, each by another process.
    for key in keys[..<30] {
      let known = KnownSpellings(capacity: 32, memory: NodeMemory(shared))
      #expect(known.add(key).isEmpty)
    }
    let last = KnownSpellings(capacity: 32, memory: NodeMemory(shared))
    #expect(keys[30..<33].flatMap { last.add($0) } == Array(keys[..<3]))
    // The place of the first one is used again.
    let successor = KnownSpellings(capacity: 32, memory: NodeMemory(shared))
    #expect(Set(successor.all(in: NodeID(rawValue: 1))) == Set(keys[1..<33].map(\.name)))
    #expect(Set(successor.add(keys[33])) == [keys[1], keys[3]])
  }
}
