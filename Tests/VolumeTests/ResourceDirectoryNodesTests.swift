import Fuse
import Posix
import TestSupport
import Testing

@testable import Volume

@Suite struct ResourceDirectoryNodesTests {
  private let a = [Array("a".utf8)]
  private let b = [Array("a".utf8), Array("b".utf8)]

  @Test("a path keeps its node until the kernel forgets it")
  func lookupCount() throws {
    var nodes = ResourceDirectoryNodes(root: 1)
    let first = nodes.lookUp(a, inodeNumber: 5)
    #expect(nodes.lookUp(a, inodeNumber: 6) == first && nodes.lookUp(b, inodeNumber: 7) != first)
    #expect(
      try nodes.count == 3 && nodes.inodeNumber(of: first) == 6, "the inode number is that of the last lookup"
    )
    #expect(try nodes.path(of: first) == a)
    nodes.forget(first, lookups: 1)
    #expect(try nodes.path(of: first) == a)
    nodes.forget(first, lookups: 1)
    #expect(throws: Errno.staleFileHandle) { try nodes.path(of: first) }
    #expect(nodes.lookUp(a, inodeNumber: 2) != first, "node numbers are not reused")
  }

  @Test("the topmost node is never forgotten")
  func top() throws {
    var nodes = ResourceDirectoryNodes(root: 1)
    #expect(nodes.lookUp([], inodeNumber: 2) == ResourceDirectoryNodes.root)
    nodes.forget(ResourceDirectoryNodes.root, lookups: 7)
    #expect(try nodes.path(of: ResourceDirectoryNodes.root) == [])
    nodes.forget(NodeID(rawValue: 99), lookups: 1)
    #expect(nodes.count == 1)
  }

  @Test("its numbers differ from those of all other nodes")
  func numbers() {
    var nodes = ResourceDirectoryNodes(root: 1)
    #expect(ResourceDirectoryNodes.contain(ResourceDirectoryNodes.root))
    #expect(ResourceDirectoryNodes.contain(nodes.lookUp(b, inodeNumber: 2)))
    for other in [NodeID.root, ControlFile.node, NodeID(rawValue: 5 << 32 | 7)] {
      #expect(!ResourceDirectoryNodes.contain(other))
    }
  }

  @Test("exactly the nodes with lookups are kept", arguments: [UInt64](1...8))
  func random(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var nodes = ResourceDirectoryNodes(root: 1)
    var lookups: [NodeID: UInt64] = [:]
    for _ in 0..<2000 {
      if Bool.random(using: &random) {
        let path = (0..<Int.random(in: 1...2, using: &random)).map { _ in
          [UInt8.random(in: 97...101, using: &random)]
        }
        lookups[nodes.lookUp(path, inodeNumber: 2), default: 0] += 1
      } else if let (node, count) = lookups.randomElement(using: &random) {
        let forgotten = UInt64.random(in: 1...count, using: &random)
        nodes.forget(node, lookups: forgotten)
        lookups[node] = forgotten == count ? nil : count - forgotten
      }
      #expect(nodes.count == lookups.count + 1)
    }
  }
}
