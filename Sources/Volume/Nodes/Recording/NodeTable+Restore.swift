import Containers
import Fuse
import Layers
import Posix

extension NodeTable {
  /// Takes over the nodes of a predecessor. What the kernel may have cached of a directory is in doubt until the
  /// directory is resolved again.
  mutating func restore(from memory: NodeMemory) {
    if !memory.use() { return }
    // The kernel may have cached the root's attributes before any other node is recorded.
    let slots = max(memory.slotCount, Self.root + 1)
    var used = hardLinks.restore(from: memory, names)
    nodes.reserveCapacity(Int(slots))
    used.reserveCapacity(used.count + Int(slots))
    for slot in Self.root + 1..<slots {
      let record = memory[slot]
      if record.kind == nil {
        nodes.append(Node(generation: record.generation, nextFree: firstFree))
        firstFree = slot
      } else {
        nodes.append(Node(record))
        used.append(record.name)
        count += 1
      }
    }
    names.adopt(used)
    identities = HashIndex(capacity: Int(slots))
    entries = HashIndex(capacity: Int(slots))
    for slot in Self.root..<slots where nodes[Int(slot)].kind != nil { connect(slot) }
  }

  private mutating func connect(_ slot: UInt32) {
    if slot != Self.root {
      linkToParent(slot)
      entries.insert(slot, nameHash(of: slot))
    }
    if nodes[Int(slot)].isIndexed { index(slot) }
    guard let state = nodes[Int(slot)].directory else { return }
    state.parts = []
    state.wasResolved = true
    state.wasListed = true
    state.mayHaveStaleNegatives = true
    uncovered.insert(slot)
  }

  private func nameHash(of slot: UInt32) -> UInt32 {
    names.withName(at: nodes[Int(slot)].name) { NodeHash.of($0, in: nodes[Int(slot)].parent) }
  }

  /// Gives the nodes the files that a predecessor had open, which are open in this process too.
  mutating func adoptFiles(_ memory: NodeMemory, _ layers: [Layer]) {
    let gates = layers.map(\.gate)
    for slot in Self.root..<max(memory.slotCount, Self.root) {
      let record = memory[slot]
      guard record.kind != nil, record.file > 0, record.layer < gates.count else { continue }
      adopt(LayerFile(Descriptor(owning: record.file - 1), nil, gates[Int(record.layer)]), for: slot)
    }
    // They are recorded.
    nodes.forgetChanges()
  }

  /// Gives a restored node the file that it had open.
  mutating func adopt(_ file: LayerFile, for slot: UInt32) {
    nodes[Int(slot)].file = file
    descriptors.touch(slot, in: nodes)
  }
}
