import Fuse
import Layers
import Posix
import TestSupport
import Testing

@testable import Volume

/// Nodes that are restored from shared memory by a successor.
@Suite struct NodeRecordingTests {
  /// A table in shared memory that is changed at random, and what it has to have.
  private struct Run {
    struct Known: Equatable {
      var lookups: UInt64
      var name: [UInt8]
      var parent: NodeID
      var isDirectory: Bool
      var inodeNumber: UInt64
    }

    let shared: SharedMemory
    var table: NodeTable
    var random: SplitMix64

    init(seed: UInt64) throws {
      shared = try SharedMemory(name: "test", size: NodeMemory.size)
      table = NodeTable(budget: 5, memory: NodeMemory(shared))
      random = SplitMix64(seed: seed)
    }

    var slots: [UInt32] { (2..<UInt32(table.nodes.count)).filter { table[$0].kind != nil } }

    var known: [NodeID: Known] {
      Dictionary(
        uniqueKeysWithValues: slots.map { slot in
          let node = table[slot]
          return (
            table.number(of: slot),
            Known(
              lookups: node.lookups, name: table.name(of: slot), parent: table.number(of: node.parent),
              isDirectory: node.kind == .directory, inodeNumber: node.inodeNumber)
          )
        })
    }

    /// All names by which a node is found, by parent.
    var names: Set<String> {
      let parents = [NodeTable.root] + slots.filter { table[$0].kind == .directory }
      return Set(
        parents.flatMap { parent in
          table.knownNames(in: parent).flatMap { name in
            table.nodes(named: name, in: parent).map { "\(parent) \(name) \(table.number(of: $0).rawValue)" }
          }
        })
    }

    mutating func step() {
      let directories = [NodeTable.root] + slots.filter { table[$0].kind == .directory }
      let parent = random.pick(directories)
      let name =
        Array("name \(random.number(0...12))".utf8) + Array(repeating: 97, count: random.number(0...40))
      switch random.number(0...9) {
      case 0...2:
        _ = table.lookUpDirectory(name, in: parent, inodeNumber: 1 << 63 | UInt64(random.number(1...99)))
      case 3...6:
        let inode = UInt64(random.number(1...30))
        let identity = FileIdentity(device: 1, inode: inode, born: TimeSpec(seconds: 1, nanoseconds: 0))
        let slot = table.lookUpFile(
          identity, layer: random.number(0...1), kind: .regular, name: name, in: parent, inodeNumber: inode)
        table.recordReportedSize(UInt64(random.number(0...3)), of: slot)
        if random.percent(20) { table[slot].isPinned = true }
      case 7:
        if let slot = slots.randomElement(using: &random), table[slot].kind != .directory {
          table.detach(slot, from: table.name(of: slot), in: table[slot].parent)
        }
      default:
        if let slot = slots.randomElement(using: &random), table[slot].lookups > 0 {
          _ = table.forget(slot, lookups: UInt64(random.number(1...Int(table[slot].lookups))))
        }
      }
      table.record()
    }

    mutating func restart() { table = NodeTable(budget: 5, memory: NodeMemory(shared)) }
  }

  @Test("a successor has the same nodes, names and lookup counts", arguments: 0..<20)
  func restart(seed: UInt64) throws {
    var run = try Run(seed: seed)
    for round in 0..<30 {
      for _ in 0..<run.random.number(1...40) { run.step() }
      let (known, names) = (run.known, run.names)
      run.restart()
      #expect(run.known == known, "seed \(seed), round \(round)")
      #expect(run.names == names, "seed \(seed), round \(round)")
      let faults = run.table.checkInvariants()
      #expect(faults.isEmpty, "seed \(seed), round \(round): \(faults)")
      if !faults.isEmpty || run.known != known { return }
    }
  }

  @Test("a transaction that was committed is completed, wherever its writer died", arguments: 0..<20)
  func tornTransaction(seed: UInt64) throws {
    var run = try Run(seed: seed)
    for round in 0..<100 {
      let memory = NodeMemory(run.shared)
      let before = (0..<max(memory.slotCount, 64) + 64).map { memory[$0] }
      run.step()
      let known = run.known
      let changed = (0..<memory.slotCount).filter { !isEqual(before[Int($0)], memory[$0]) }
      // The last transaction, and perhaps further entries that say the same as the records do.
      let count = (0..<NodeMemory.journalCapacity).prefix {
        isEqual(memory.journal[$0].record, memory[memory.journal[$0].slot])
      }.count
      for slot in changed where run.random.percent(50) { memory.records[Int(slot)] = before[Int(slot)] }
      memory.header.pointee.committed = UInt32(count)
      run.restart()
      #expect(run.known == known, "seed \(seed), round \(round)")
      if run.known != known { return }
    }
  }

  private func isEqual(_ left: NodeRecord, _ right: NodeRecord) -> Bool {
    withUnsafeBytes(of: left) { left in withUnsafeBytes(of: right) { $0.elementsEqual(left) } }
  }
}
