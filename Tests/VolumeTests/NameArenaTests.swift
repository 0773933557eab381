import Fuse
import Posix
import TestSupport
import Testing

@testable import Volume

@Suite struct NameArenaTests {
  @Test("names are unchanged while others are added and removed", arguments: 0..<20)
  func random(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var arena = NameArena()
    var names: [UInt32: [UInt8]] = [:]
    for _ in 0..<400 {
      if random.percent(60) {
        let length = random.percent(5) ? random.number(200...1024) : random.number(0...30)
        let name = (0..<length).map { _ in UInt8(random.number(1...255)) }
        let index = arena.add(name)
        #expect(index != 0 && names.updateValue(name, forKey: index) == nil, "seed \(seed)")
      } else if let index = names.keys.sorted().randomElement(using: &random) {
        arena.remove(index)
        if random.percent(50) { arena.reclaim() }
        names[index] = nil
      }
    }
    for (index, name) in names {
      #expect(arena.name(at: index) == name, "seed \(seed)")
      #expect(arena.has(name, at: index), "seed \(seed)")
      #expect(!arena.has(name + [97], at: index), "seed \(seed)")
      if !name.isEmpty { #expect(!arena.has(Array(name.dropLast()) + [0], at: index), "seed \(seed)") }
    }
  }

  @Test("index 0 is the empty name")
  func emptyName() {
    var arena = NameArena()
    #expect(arena.name(at: 0).isEmpty)
    #expect(arena.has([], at: 0))
    arena.remove(0)
    #expect(arena.add([97]) != 0)
    #expect(arena.name(at: 0).isEmpty)
  }

  @Test("the space of removed names is reused")
  func reuse() {
    var arena = NameArena()
    func round(_ number: Int) {
      let indexes = (0..<1_000).map { arena.add(Array(repeating: UInt8(number), count: $0 % 100)) }
      for index in indexes { arena.remove(index) }
      arena.reclaim()
    }
    round(1)
    let size = arena.size
    for number in 2..<50 { round(number) }
    #expect(arena.size == size)
  }
}

@Suite struct NodeTableMemoryTests {
  @Test("a node stays small, since there is one for each known file")
  func size() {
    #expect(MemoryLayout<Node>.stride <= 88)
    #expect(MemoryLayout<FileIdentity>.size <= 20)
  }

  @Test("the space of forgotten files is reused")
  func reuse() {
    var table = NodeTable(budget: 5)
    func round(_ number: Int) {
      let folder = table.lookUpDirectory(Array("folder".utf8), in: NodeTable.root, inodeNumber: 1 << 63)
      var slots: [UInt32] = []
      for file in 0..<500 {
        let identity = FileIdentity(
          device: 1, inode: UInt64(number * 1000 + file), born: TimeSpec(seconds: 0, nanoseconds: 0))
        let name = Array("file \(1000 + (file + number) % 500)".utf8)
        slots.append(
          table.lookUpFile(identity, layer: 0, kind: .regular, name: name, in: folder, inodeNumber: 100))
      }
      // A file's new name takes the space of its former one.
      for slot in slots.prefix(100) {
        table.detach(slot, from: table.name(of: slot), in: folder)
        _ = table.lookUpFile(
          table[slot].identity, layer: 0, kind: .regular, name: Array("other \(slot)".utf8), in: folder,
          inodeNumber: 100)
      }
      #expect(table.checkInvariants().isEmpty)
      for slot in slots + slots.prefix(100) { _ = table.forget(slot, lookups: 1) }
      _ = table.forget(folder, lookups: 1)
      #expect(table.count == 1)
    }
    round(1)
    let (slots, bytes) = (table.nodes.count, table.names.size)
    for number in 2..<20 { round(number) }
    #expect(table.nodes.count == slots)
    #expect(table.names.size <= bytes * 5 / 4)
  }
}
