import Fuse
import Layers
import Posix
import Testing

@testable import Volume

/// The nodes of files with several hard links in a layer below a writable one: each name has one.
@Suite struct HardLinkNodeTests {
  private var table = NodeTable(budget: 5, isWritable: true)

  private func identity(_ inode: UInt64) -> FileIdentity {
    FileIdentity(device: 1, inode: inode, born: TimeSpec(seconds: 1, nanoseconds: 0))
  }

  private mutating func lookUp(
    _ name: String, links: UInt64 = 2, inode: UInt64 = 1, layer: Int = 1
  ) -> UInt32 {
    let slot = table.lookUpFile(
      identity(inode), layer: layer, kind: .regular, name: Array(name.utf8), in: NodeTable.root,
      inodeNumber: inode, soleSize: links == 1 ? 3 : nil)
    table.recordReportedSize(3, of: slot)
    return slot
  }

  @Test("each name of a lower file has a node, the names of an upper one share theirs")
  mutating func names() {
    let (first, second) = (lookUp("x"), lookUp("y"))
    #expect(first != second)
    #expect(lookUp("x") == first && lookUp("y") == second)
    #expect(Set(table.files(identity(1), layer: 1)) == [first, second])
    #expect(lookUp("x", inode: 2, layer: 0) == lookUp("y", inode: 2, layer: 0))
    #expect(table.checkInvariants().isEmpty)
  }

  @Test("a file with one name keeps its node when it is renamed, one that had several does not")
  mutating func renamed() {
    let sole = lookUp("a", links: 1, inode: 3)
    #expect(lookUp("b", links: 1, inode: 3) == sole)
    // Which of the names is left under a third one is not known.
    let first = lookUp("x")
    #expect(lookUp("z", links: 1) != first)
    // The first name was seen before there were others.
    let former = lookUp("p", links: 1, inode: 4)
    let other = lookUp("q", inode: 4)
    #expect(other != former)
    let last = lookUp("r", links: 1, inode: 4)
    #expect(last != former && last != other)
    #expect(table.checkInvariants().isEmpty)
  }

  @Test("a node does not turn to a name that its file has had before, once there are several")
  mutating func formerName() {
    let slot = lookUp("a", links: 1)
    #expect(lookUp("b", links: 1) == slot)
    let other = lookUp("a")
    #expect(other != slot)
    table.detach(slot, from: Array("b".utf8), in: NodeTable.root)
    #expect(table.name(of: slot) == Array("b".utf8) && table.hardLinkName(of: slot) == nil)
    #expect(table.checkInvariants().isEmpty)
  }

  @Test("a name that was looked up while it was the only one is not taken for another one later")
  mutating func soleMeanwhile() {
    let first = lookUp("a")
    _ = lookUp("b")
    // The layer's `b` is removed, and `a` renamed.
    let renamed = lookUp("c", links: 1)
    #expect(renamed != first)
    // It is linked to the first name again.
    #expect(lookUp("a") == first)
    #expect(lookUp("d", links: 1) != renamed)
    #expect(table.checkInvariants().isEmpty)
  }

  @Test("a node that was rebound to a name of such a file is found by it")
  mutating func rebound() {
    let other = lookUp("y")
    let slot = lookUp("x", links: 1, inode: 9)
    table.rebind(slot, to: identity(1), layer: 1, isSole: false, inodeNumber: 1)
    #expect(lookUp("x") == slot && lookUp("y") == other)
    // Not one that has the name in place of it.
    let replaced = lookUp("x", links: 1, inode: 10)
    let present = lookUp("x")
    table.rebind(replaced, to: identity(1), layer: 1, isSole: false, inodeNumber: 1)
    #expect(lookUp("x") == present)
    #expect(table.checkInvariants().isEmpty)
  }

  @Test("a copy tells the names by which the kernel may know another node of the former file")
  mutating func copied() {
    let first = lookUp("x")
    let replaced = lookUp("x", links: 1, inode: 9)
    table.rebind(replaced, to: identity(1), layer: 1, isSole: false, inodeNumber: 1)
    _ = lookUp("y")
    var copy = FileStatus(
      regularFile: 0o644, owner: 0, group: 0, size: 3, modified: TimeSpec(seconds: 1, nanoseconds: 0))
    copy.identity = identity(20)
    let broken = table.adoptCopy(copy, for: replaced, inodeNumber: 20).brokenLinks
    #expect(broken == [EntryKey(parent: .root, name: Array("x".utf8))])
    #expect(table.adoptCopy(copy, for: first, inodeNumber: 20).brokenLinks.isEmpty)
    #expect(table.checkInvariants().isEmpty)
  }
}
