import Containers
import Fuse
import Layers
import Posix

extension NodeTable {
  /// Takes over the nodes of a predecessor. What the kernel may have cached of a directory is in doubt until the
  /// directory is resolved again.
  mutating func restore(from memory: NodeMemory) {
    if memory.slotCount <= Self.root + 1 { return }
    var used = hardLinks.restore(from: memory, names)
    for slot in Self.root + 1..<memory.slotCount {
      let record = memory[slot]
      nodes.append(Node(record))
      if record.kind == nil {
        nodes[Int(slot)].nextSibling = firstFree
        firstFree = slot
      } else {
        used.append(record.name)
      }
    }
    names.adopt(used)
    for slot in Self.root..<memory.slotCount where nodes[Int(slot)].kind != nil { connect(slot) }
    count = nodes.count { $0.kind != nil }
    nodes.forgetChanges()
  }

  private mutating func connect(_ slot: UInt32) {
    if slot != Self.root {
      linkToParent(slot)
      entries.insert(slot, NodeHash.of(name(of: slot), in: nodes[Int(slot)].parent))
    }
    if nodes[Int(slot)].isIndexed { index(slot) }
    guard let state = nodes[Int(slot)].directory else { return }
    state.parts = []
    state.wasResolved = true
    state.wasListed = true
    state.mayHaveStaleNegatives = true
    uncovered.insert(slot)
  }

  /// The files that a predecessor had open, which are open in this process too, by slot.
  func inheritedFiles(_ memory: NodeMemory) -> [(slot: UInt32, layer: Int, file: CInt)] {
    (1..<max(memory.slotCount, 1)).compactMap { slot in
      let record = memory[slot]
      return record.kind != nil && record.file > 0 ? (slot, Int(record.layer), record.file - 1) : nil
    }
  }

  /// Gives a restored node the file that it had open.
  mutating func adopt(_ file: LayerFile, for slot: UInt32) {
    nodes[Int(slot)].file = file
    descriptors.touch(slot, in: nodes)
  }
}
