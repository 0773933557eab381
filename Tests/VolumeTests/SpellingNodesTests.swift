import Fuse
import Layers
import Posix
import TestSupport
import Testing

@testable import Volume

/// Files that the kernel knows by several spellings of several directories.
@Suite struct SpellingNodesTests {
  private static let names = ["a", "A"].map { Array($0.utf8) }
  private var table = NodeTable(budget: 5, spellings: KnownSpellings(capacity: 64))

  private mutating func lookUp(_ name: [UInt8], in parent: UInt32) -> UInt32 {
    let identity = FileIdentity(device: 1, inode: 1, born: TimeSpec(seconds: 1, nanoseconds: 0))
    return table.lookUpFile(identity, layer: 0, kind: .regular, name: name, in: parent, inodeNumber: 1)
  }

  @Test("a file loses its name in one directory only, each time that it is detached", arguments: 0..<20)
  mutating func detach(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let directories = (0..<4).map { number in
      table.lookUpDirectory(Array("d\(number)".utf8), in: NodeTable.root, inodeNumber: UInt64(100 + number))
    }
    var lookups = directories.flatMap { directory in Self.names.map { (directory, $0) } }
    lookups.shuffle(using: &random)
    var node: UInt32 = 0
    for (directory, name) in lookups { node = lookUp(name, in: directory) }
    var remaining = Set(directories)
    for directory in directories.shuffled(using: &random) {
      // As an event is handled.
      let nodes = table.nodes(named: Self.names[0], in: directory)
      #expect(nodes == [node])
      for node in nodes { table.detach(node, from: Self.names[0], in: directory) }
      remaining.remove(directory)
      for other in remaining {
        #expect(table.spellings(of: Self.names[0], in: other) == Set(Self.names))
        #expect(table.nodes(named: Self.names[1], in: other) == [node])
      }
    }
    #expect(table[node].isUnlinked)
  }
}
