import Containers
import Fuse
import Posix
import Testing

@testable import Volume

/// Broken invariants of what locks protect. That those of a consistent value hold, all tests show: debug builds check it.
@Suite struct InvariantTests {
  @Test("a node whose children are miscounted is found", arguments: [1, 100])
  func nodes(files: Int) {
    var table = NodeTable(budget: 5)
    for file in 1...files {
      let identity = FileIdentity(
        device: 1, inode: UInt64(file), born: TimeSpec(seconds: 0, nanoseconds: 0))
      _ = table.lookUpFile(
        identity, layer: 0, kind: .regular, name: Array("\(file)".utf8), in: NodeTable.root,
        inodeNumber: UInt64(file) + 1)
    }
    // Of a large table a node at random is checked.
    let checks = 4000
    #expect((0..<checks).allSatisfy { _ in table.brokenInvariant() == nil })
    table[NodeTable.root].directory?.children += 1
    #expect((0..<checks).contains { _ in table.brokenInvariant() != nil })
  }

  @Test("a name that expects fewer events than none is found, and a whiteout of nothing")
  func ownEvents() {
    let key = EntryKey(parent: .root, name: [97])
    for record in [
      OwnChanges.EntryRecord(identity: nil, events: -1),
      OwnChanges.EntryRecord(identity: nil, mayBeWhiteout: true, events: 1),
    ] {
      var state = OwnChanges.State()
      state.names.insert(OwnChanges.EntryRecord(identity: nil, events: 0), for: key)
      state.pendingNames.begin(key)
      #expect(state.brokenInvariant() == nil)
      state.names.insert(record, for: key)
      #expect(state.brokenInvariant() != nil)
    }
  }

  @Test("a file that the worker and a READ prefetch at once is found")
  func prefetched() {
    var streams = ReadStreams()
    #expect(streams.brokenInvariant() == nil)
    streams.taken = [.root]
    #expect(streams.brokenInvariant() == "the worker runs without files, or the reverse")
    streams.share = [.root]
    #expect(streams.brokenInvariant() == "a file is prefetched twice")
  }
}
