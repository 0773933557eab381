import Fuse
import Layers
import Posix
import TestSupport
import Testing

@testable import Volume

/// Random operations on a table, with a model of the nodes that it must have.
private struct NodeTableModel {
  /// What identifies the node of a lookup.
  enum Key: Hashable {
    case directory(parent: NodeID, name: UInt8)
    case file(FileIdentity)
  }

  var table = NodeTable(budget: 5)
  var lookups: [NodeID: UInt64] = [:]
  var keys: [Key: NodeID] = [:]
  /// The parent of each node's last lookup.
  var parents: [NodeID: NodeID] = [:]
  var random: SplitMix64

  init(seed: UInt64) { random = SplitMix64(seed: seed) }

  /// The nodes with lookups and their ancestors.
  var expected: Set<NodeID> {
    var result: Set<NodeID> = [.root]
    for (node, count) in lookups where count > 0 {
      var node = node
      while result.insert(node).inserted, let parent = parents[node] { node = parent }
    }
    return result
  }

  mutating func lookUp() throws {
    let directories = expected.filter { node in
      (try? table.slot(of: node)).map { table[$0].kind == .directory } ?? false
    }
    let parent = random.pick(directories.sorted { $0.rawValue < $1.rawValue })
    let name = UInt8(random.number(97...102))
    let slot = try table.slot(of: parent)
    let key: Key
    let found: UInt32
    if random.percent(40) {
      key = .directory(parent: parent, name: name)
      found = table.lookUpDirectory([name], in: slot, inodeNumber: 1 << 63)
    } else {
      let identity = FileIdentity(
        device: 1, inode: UInt64(random.number(1...20)), born: TimeSpec(seconds: 0, nanoseconds: 0))
      key = .file(identity)
      found = table.lookUpFile(
        identity, layer: 0, kind: .regular, name: [name], in: slot, inodeNumber: 20)
    }
    let node = table.number(of: found)
    // `expected` does not include this lookup yet.
    if let former = keys[key], expected.contains(former) { #expect(node == former) }
    keys[key] = node
    lookups[node, default: 0] += 1
    parents[node] = parent
  }

  mutating func forget() throws {
    let known = lookups.filter { $0.value > 0 }.keys.sorted { $0.rawValue < $1.rawValue }
    guard !known.isEmpty else { return }
    let node = random.pick(known)
    let count = UInt64(random.number(1...Int(lookups[node] ?? 1)))
    _ = table.forget(try table.slot(of: node), lookups: count)
    lookups[node]? -= count
  }

  /// Resolves a directory, or makes it unresolved.
  mutating func resolve() throws {
    let slot = try table.slot(of: random.pick(expected.sorted { $0.rawValue < $1.rawValue }))
    guard table[slot].directory != nil else { return }
    if random.percent(20) {
      _ = table.unresolve(slot)
    } else {
      _ = table.set(
        NodeStore.ResolvedDirectory(found: .init(merged: nil), isCovered: random.percent(50)), of: slot)
    }
  }

  mutating func open() throws {
    let known = lookups.filter { $0.value > 0 }.keys.sorted { $0.rawValue < $1.rawValue }
    guard !known.isEmpty else { return }
    let slot = try table.slot(of: random.pick(known))
    guard table[slot].kind == .regular else { return }
    let descriptor = try Descriptor.open("/", [.pathOnly])
    let kept = table.keep(LayerFile(descriptor), of: table[slot].identity, for: slot)
    #expect(kept.file != nil)
    #expect(table.descriptors.count <= 5)
  }
}

@Suite struct NodeTableTests {
  @Test("random lookups, forgets and opens keep exactly the nodes that are needed", arguments: 0..<50)
  func random(seed: UInt64) throws {
    var model = NodeTableModel(seed: seed)
    for step in 0..<400 {
      switch model.random.number(0...9) {
      case 0...4: try model.lookUp()
      case 5...6: try model.forget()
      case 7: try model.resolve()
      default: try model.open()
      }
      let faults = model.table.checkInvariants()
      #expect(faults.isEmpty, "seed \(seed), step \(step): \(faults)")
      let expected = model.expected
      #expect(model.table.count == expected.count, "seed \(seed), step \(step)")
      for node in expected { #expect((try? model.table.slot(of: node)) != nil, "seed \(seed), step \(step)") }
      if !faults.isEmpty || model.table.count != expected.count { return }
    }
    for (node, count) in model.lookups where count > 0 {
      _ = model.table.forget(try model.table.slot(of: node), lookups: count)
    }
    #expect(model.table.count == 1)
    #expect(model.table.descriptors.count == 0)
  }

  @Test("node numbers are not reused")
  func generations() throws {
    var table = NodeTable(budget: 5)
    var seen: Set<NodeID> = []
    for _ in 0..<100 {
      let slot = table.lookUpDirectory([97], in: NodeTable.root, inodeNumber: 1 << 63)
      #expect(seen.insert(table.number(of: slot)).inserted)
      let number = table.number(of: slot)
      _ = table.forget(slot, lookups: 1)
      #expect(throws: Errno.staleFileHandle) { try table.slot(of: number) }
    }
    #expect(table.nodes.count <= 4)
  }

  @Test("a rebound node is found by its new identity, unless that has a node already")
  func rebinding() throws {
    var table = NodeTable(budget: 5)
    func identity(_ inode: UInt64) -> FileIdentity {
      FileIdentity(device: 1, inode: inode, born: TimeSpec(seconds: 0, nanoseconds: 0))
    }
    func lookUp(_ inode: UInt64) -> UInt32 {
      table.lookUpFile(
        identity(inode), layer: 0, kind: .regular, name: [97], in: NodeTable.root, inodeNumber: inode)
    }
    let first = lookUp(1)
    table.rebind(first, to: identity(2), layer: 0, isSole: true, inodeNumber: 2)
    #expect(lookUp(2) == first)
    let other = lookUp(3)
    table.rebind(first, to: identity(3), layer: 0, isSole: true, inodeNumber: 3)
    #expect(lookUp(3) == other)
    _ = table.forget(first, lookups: 2)
    #expect(lookUp(3) == other)
    #expect(table.checkInvariants().isEmpty)
  }

  @Test("the size is doubtful once several sizes were reported, until the file is read")
  func doubtfulSize() throws {
    var table = NodeTable(budget: 5)
    let old = FileIdentity(device: 1, inode: 1, born: TimeSpec(seconds: 0, nanoseconds: 0))
    let new = FileIdentity(device: 1, inode: 2, born: TimeSpec(seconds: 0, nanoseconds: 0))
    func lookUp() -> UInt32 {
      table.lookUpFile(old, layer: 0, kind: .regular, name: [97], in: NodeTable.root, inodeNumber: 1)
    }
    let slot = lookUp()
    table.recordReportedSize(10, of: slot)
    table.recordReportedSize(10, of: slot)
    table.rebind(slot, to: new, layer: 0, isSole: true, inodeNumber: 2)
    #expect(!table[slot].isSizeDoubtful, "the kernel can only have cached this size")
    table.recordReportedSize(11, of: slot)
    #expect(table[slot].isSizeDoubtful)
    table.recordReportedSize(11, of: slot)
    #expect(table[slot].isSizeDoubtful, "the kernel may have dropped the reply")
    _ = table.keep(LayerFile(try Descriptor.open("/", [.pathOnly])), of: new, for: slot)
    #expect(table[slot].isPinned && table[slot].isSizeDoubtful, "until the kernel has this file's size")
    table[slot].confirmSize()
    #expect(!table[slot].isSizeDoubtful)
    table.recordReportedSize(12, of: slot)
    #expect(!table[slot].isSizeDoubtful, "a file that was read changes in place")

    _ = table.forget(slot, lookups: 1)
    let grown = lookUp()
    table.recordReportedSize(10, of: grown)
    table.recordReportedSize(20, of: grown)
    #expect(table[grown].isSizeDoubtful && !table[grown].wasRebound, "the same file, changed in place")
    table.rebind(grown, to: new, layer: 0, isSole: true, inodeNumber: 2)
    #expect(table[grown].isSizeDoubtful && table[grown].wasRebound)
  }

  @Test("a reply that changes the size is not cached")
  func changedSize() {
    var table = NodeTable(budget: 5)
    let identity = FileIdentity(device: 1, inode: 1, born: TimeSpec(seconds: 1, nanoseconds: 0))
    let slot = table.lookUpFile(
      identity, layer: 0, kind: .regular, name: [97], in: NodeTable.root, inodeNumber: 1)
    let settled = [10, 10, 20, 20, 10].map { table.recordReportedSize($0, of: slot) }
    #expect(settled == [true, true, false, true, false])
  }

  @Test(
    "a renamed file keeps its node unless the kernel may have another size, or the node be another file's")
  func renamedFile() {
    let old = TimeSpec(seconds: 1, nanoseconds: 0)
    let cases: [(born: TimeSpec, sizes: [UInt64], keepsNode: Bool)] = [
      (old, [10, 10], true), (old, [0, 10], false), (old, [0, 10, 10], false), (.now, [10, 10], false),
      (TimeSpec(seconds: 0, nanoseconds: 0), [10, 10], false),
    ]
    for (born, sizes, keepsNode) in cases {
      var table = NodeTable(budget: 5)
      let identity = FileIdentity(device: 1, inode: 1, born: born)
      func lookUp(_ name: UInt8, _ size: UInt64) -> UInt32 {
        let slot = table.lookUpFile(
          identity, layer: 0, kind: .regular, name: [name], in: NodeTable.root, inodeNumber: 1, soleSize: size
        )
        table.recordReportedSize(size, of: slot)
        return slot
      }
      let first = sizes.dropLast().map { lookUp(97, $0) }
      let renamed = lookUp(98, sizes[sizes.count - 1])
      #expect(Set(first).count == 1 && (renamed == first[0]) == keepsNode, "\(born.seconds) \(sizes)")
      #expect(lookUp(98, sizes[sizes.count - 1]) == renamed, "the name keeps the node")
      #expect(table.checkInvariants().isEmpty)
    }
  }

  @Test("a name that a file was seen to lose is none of its hard links")
  func lostName() throws {
    let file = FileIdentity(device: 1, inode: 1, born: TimeSpec(seconds: 0, nanoseconds: 0))
    for isSeen in [true, false] {
      var table = NodeTable(budget: 5)
      func lookUp(_ name: UInt8) -> UInt32 {
        table.lookUpFile(file, layer: 0, kind: .regular, name: [name], in: NodeTable.root, inodeNumber: 1)
      }
      let slot = lookUp(97)
      if isSeen { table.detach(slot, from: [97], in: NodeTable.root) }
      #expect(!table[slot].isDetached, "an unread node stays with its name")
      #expect(lookUp(98) == slot)
      #expect(table.hardLinkName(of: slot) == (isSeen ? nil : EntryKey(parent: .root, name: [97])))
      // A lookup by that name restores it.
      _ = lookUp(97)
      #expect(table.hardLinkName(of: slot) == EntryKey(parent: .root, name: [98]))
      #expect(table.checkInvariants().isEmpty)
    }
  }

  @Test("files are found by the name of their last lookup even if they have lost it")
  func lastNamed() throws {
    var table = NodeTable(budget: 5)
    let slots = (1...2).map { inode in
      table.lookUpFile(
        FileIdentity(device: 1, inode: inode, born: TimeSpec(seconds: 0, nanoseconds: 0)), layer: 0,
        kind: .regular, name: [97], in: NodeTable.root, inodeNumber: inode)
    }
    _ = table.lookUpDirectory([97], in: NodeTable.root, inodeNumber: 1 << 63)
    table[slots[0]].isPinned = true
    table.detach(slots[0], from: [97], in: NodeTable.root)
    #expect(Set(table.files(lastNamed: [97], in: NodeTable.root)) == Set(slots))
    #expect(table.files(lastNamed: [98], in: NodeTable.root).isEmpty)
  }
}
