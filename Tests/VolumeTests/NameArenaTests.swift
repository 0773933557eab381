import Fuse
import Posix
import TestSupport
import Testing

@testable import Volume

@Suite struct NameArenaTests {
  @Test("names stay what they are while others come and go", arguments: 0..<20)
  func random(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var arena = NameArena()
    var names: [UInt32: [UInt8]] = [:]
    for _ in 0..<400 {
      if random.percent(60) {
        let length = random.percent(5) ? random.number(200...1024) : random.number(0...30)
        let name = (0..<length).map { _ in UInt8(random.number(1...255)) }
        let place = arena.add(name)
        #expect(place != 0 && names.updateValue(name, forKey: place) == nil, "seed \(seed)")
      } else if let place = names.keys.sorted().randomElement(using: &random) {
        arena.remove(place)
        names[place] = nil
      }
    }
    for (place, name) in names {
      #expect(arena.name(at: place) == name, "seed \(seed)")
      #expect(arena.has(name, at: place), "seed \(seed)")
      #expect(!arena.has(name + [97], at: place), "seed \(seed)")
      if !name.isEmpty { #expect(!arena.has(Array(name.dropLast()) + [0], at: place), "seed \(seed)") }
    }
  }

  @Test("where nothing was added is the empty name")
  func nothing() {
    var arena = NameArena()
    #expect(arena.name(at: 0).isEmpty)
    #expect(arena.has([], at: 0))
    arena.remove(0)
    #expect(arena.add([97]) != 0)
    #expect(arena.name(at: 0).isEmpty)
  }

  @Test("names that come and go take no more than they did at first")
  func reuse() {
    var arena = NameArena()
    func round(_ number: Int) {
      let places = (0..<1_000).map { arena.add(Array(repeating: UInt8(number), count: $0 % 100)) }
      for place in places { arena.remove(place) }
    }
    round(1)
    let size = arena.size
    for number in 2..<50 { round(number) }
    #expect(arena.size == size)
  }
}

@Suite struct NodeTableMemoryTests {
  @Test("a node is not larger than it need be: there is one for every file that is known")
  func size() {
    #expect(MemoryLayout<Node>.stride <= 88)
    #expect(MemoryLayout<FileIdentity>.size <= 20)
  }

  @Test("files that are looked up and forgotten again take no more than they did at first")
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
      // A name that a file goes on to takes the room of the former.
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
    let (slots, bytes) = (table.nodes.count, table.nameBytes)
    for number in 2..<20 { round(number) }
    #expect(table.nodes.count == slots)
    #expect(table.nameBytes <= bytes * 5 / 4)
  }
}
