import Containers
import Fuse
import Layers
import Posix

extension NodeTable {
  /// Takes over the nodes of a predecessor. What the kernel may have cached of a directory is in doubt until the
  /// directory is resolved again.
  mutating func restore(from memory: NodeMemory, _ layers: [Layer]) {
    if !memory.use() { return }
    let linkNames = hardLinks.restore(from: memory, names)
    let indexes = RestoredIndexes.makeAhead(memory, names, linkNames, foldsNames: foldsNames)
    restoreNodes(memory)
    adoptFiles(memory, layers)
    (identities, entries, names) = indexes().parts
  }

  private mutating func restoreNodes(_ memory: NodeMemory) {
    let slots = memory.usedSlots
    nodes.reserveCapacity(slots.count)
    for slot in slots.dropFirst() {
      let record = memory[slot]
      if record.kind == nil {
        nodes.append(Node(generation: record.generation, nextFree: firstFree))
        firstFree = slot
      } else {
        nodes.append(Node(record))
        count += 1
      }
    }
    for slot in slots where nodes[Int(slot)].kind != nil { connect(slot) }
  }

  private mutating func connect(_ slot: UInt32) {
    if slot != Self.root { linkToParent(slot) }
    guard let state = nodes[Int(slot)].directory else { return }
    state.parts = []
    state.wasResolved = true
    state.wasListed = true
    state.isInherited = true
    state.mayHaveStaleNegatives = true
    uncovered.insert(slot)
  }

  /// Gives the nodes the files that a predecessor had open, which are open in this process too: some may have lost their
  /// names since.
  private mutating func adoptFiles(_ memory: NodeMemory, _ layers: [Layer]) {
    let gates = layers.map(\.gate)
    for slot in Self.root..<max(memory.slotCount, Self.root) {
      let record = memory[slot]
      guard record.kind != nil, record.file > 0, record.layer < gates.count else { continue }
      adopt(LayerFile(Descriptor(owning: record.file - 1), nil, gates[Int(record.layer)]), for: slot)
    }
  }

  /// Gives a restored node the file that it had open.
  mutating func adopt(_ file: LayerFile, for slot: UInt32) {
    nodes[Int(slot)].file = file
    descriptors.touch(slot, in: nodes)
  }
}

extension NodeMemory {
  /// From the root's on, which the kernel may know before any other node is recorded.
  fileprivate var usedSlots: Range<UInt32> { NodeTable.root..<max(slotCount, NodeTable.root + 1) }
}

/// What finds the restored nodes. It needs the records alone, so a second thread makes it.
private struct RestoredIndexes: Sendable {
  private var identities: HashIndex
  private var entries: HashIndex
  private var names: NameArena

  var parts: (identities: HashIndex, entries: HashIndex, names: NameArena) { (identities, entries, names) }

  private init(_ memory: NodeMemory, _ names: NameArena, _ linkNames: [UInt32], foldsNames: Bool) {
    let slots = memory.usedSlots
    self.names = names
    identities = HashIndex(capacity: slots.count)
    entries = HashIndex(capacity: slots.count)
    var used = linkNames
    used.reserveCapacity(used.count + slots.count)
    for slot in slots.dropFirst() {
      let record = memory[slot]
      if record.kind == nil { continue }
      if Node.isIndexed(record) { identities.insert(slot, Node.identityHash(of: record)) }
      let hash =
        foldsNames
        ? NodeHash.of(NameFolding.key(of: names.name(at: record.name)), in: record.parent)
        : names.withName(at: record.name) { NodeHash.of($0, in: record.parent) }
      entries.insert(slot, hash)
      used.append(record.name)
    }
    self.names.adopt(used)
  }

  /// - Returns: a function that waits for the indexes, to be called once.
  static func makeAhead(
    _ memory: NodeMemory, _ names: NameArena, _ linkNames: [UInt32], foldsNames: Bool
  ) -> () -> RestoredIndexes {
    let made = Locked<RestoredIndexes?>(nil)
    let make: @Sendable () -> RestoredIndexes = {
      RestoredIndexes(memory, names, linkNames, foldsNames: foldsNames)
    }
    let thread = try? ThreadHandle(Thread(name: "restore") { made.withLock { $0 = make() } })
    return {
      thread?.join()
      return made.withLock { $0 } ?? make()
    }
  }
}
