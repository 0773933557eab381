import Fuse
import Posix
import TestSupport
import Testing

@testable import Layers
@testable import Volume

/// A watcher that has no watches left, or as many as are asked for.
final class WatcherStub: NodeWatcher {
  let isExhausted = Locked(true)
  /// Called when a watch is asked for.
  let willWatch = Locked<@Sendable () -> Void>({})

  func watch(_ part: LayerDirectory, for node: NodeID) throws(Errno) -> WatchDescriptor? {
    willWatch.withLock { $0 }()
    if isExhausted.withLock({ $0 }) { throw .noSpace }
    return 1
  }
  func watchFile(_ node: NodeID, at path: CName, follows: Bool) throws(Errno) {
    if isExhausted.withLock({ $0 }) { throw .noSpace }
  }
  func watchesFile(_ node: NodeID) -> Bool { false }
  func unwatch(_ node: NodeID, except kept: [WatchDescriptor]) {}
  func unwatchFile(_ node: NodeID) {}
  func fault(of layer: Int) -> String? { nil }
  func directoryIsUncovered() {}
  func partsMayHaveChanged(of node: NodeID) {}
}

/// A node store over two empty layers, `0` over `1`.
struct StoreFixture {
  let folder: TemporaryFolder
  let watcher = WatcherStub()
  let store: NodeStore

  init() throws {
    let folder = try TemporaryFolder()
    self.folder = folder
    let layers = try (0..<2).map { index in
      try DirectoryLayer(path: folder.folder(ByteString("\(index)")).bytes, index: index, covered: nil)
    }
    store = try NodeStore(LayerStack(layers: layers), watcher: watcher, cache: .coherent, budget: 1000)
  }

  /// Looks up a directory in the root.
  func lookUp(_ name: String) throws -> NodeID {
    let merged = try store.merged(of: .root)
    let found = try withCName(Array(name.utf8)) { name throws(Errno) in try merged.lookup(name) }
    let entry = try #require(found)
    return try withCName(Array(name.utf8)) { name throws(Errno) in
      try store.entry(entry, name, in: .root, merged).node
    }
  }

  func state(_ node: NodeID) throws -> DirectoryState {
    try store.table.withLock { table in try NodeStore.state(of: node, table) }
  }
}

@Suite struct UncoveredDirectoryTests {
  @Test("an uncovered directory keeps its last state until the first request after a poll resolves it again")
  func refresh() throws {
    let fixture = try StoreFixture()
    _ = try fixture.folder.folder("1/d")
    let node = try fixture.lookUp("d")
    let former = try fixture.store.merged(of: node)
    #expect(try fixture.store.merged(of: node) === former)

    #expect(fixture.store.pollUncovered().exist)
    let state = try fixture.state(node)
    #expect(state.merged === former && state.needsRefresh)
    let refreshed = try fixture.store.merged(of: node)
    #expect(refreshed !== former)
    #expect(state.merged === refreshed && !state.needsRefresh)

    _ = fixture.store.pollUncovered()
    _ = try fixture.folder.folder("0/d")
    #expect(try fixture.store.merged(of: node).parts.map(\.layer) == [0, 1])
    #expect(fixture.store.table.withLock { $0.checkInvariants() } == [])
  }

  @Test("what is being resolved during a poll is resolved once more")
  func pollInBetween() throws {
    let fixture = try StoreFixture()
    _ = try fixture.folder.folder("1/d")
    let node = try fixture.lookUp("d")
    _ = fixture.store.pollUncovered()
    _ = try fixture.store.merged(of: .root)
    let store = fixture.store
    let asked = Locked(0)
    fixture.watcher.willWatch.withLock {
      $0 = {
        if asked.withLock({
          $0 += 1; return $0
        }) == 1 {
          _ = store.pollUncovered()
        }
      }
    }
    _ = try store.merged(of: node)
    #expect(asked.withLock { $0 } > 1)
    #expect(try !fixture.state(node).needsRefresh)
  }

  @Test("a directory leaves the polled ones once it is watched or forgotten")
  func recovery() throws {
    let fixture = try StoreFixture()
    for name in ["a", "b"] { _ = try fixture.folder.folder(ByteString("1/\(name)")) }
    let nodes = try ["a", "b"].map { try fixture.lookUp($0) }
    #expect(fixture.store.table.withLock { $0.uncovered.count } == 3)
    fixture.store.forget(nodes[0], lookups: 1)
    #expect(fixture.store.table.withLock { $0.uncovered.count } == 2)
    fixture.watcher.isExhausted.withLock { $0 = false }
    for node in [.root, nodes[1]] {
      _ = try fixture.store.refreshParts(of: node, isForced: false, readsWhiteouts: false)
    }
    #expect(fixture.store.table.withLock { $0.uncovered.count } == 0)
    #expect(!fixture.store.pollUncovered().exist)
    #expect(fixture.store.table.withLock { $0.checkInvariants() } == [])
  }

  @Test("a poll marks all uncovered directories, and each gets its turn to be retried")
  func turns() throws {
    let fixture = try StoreFixture()
    let names = (0..<300).map { "d\($0)" }
    for name in names { _ = try fixture.folder.folder(ByteString("1/\(name)")) }
    let nodes = try names.map { try fixture.lookUp($0) }
    var retried: Set<NodeID> = []
    for _ in 0..<6 {
      let found = fixture.store.pollUncovered()
      #expect(found.retried.count <= 64)
      retried.formUnion(found.retried)
    }
    #expect(retried == Set(nodes + [.root]))
    for node in nodes { #expect(try fixture.state(node).needsRefresh) }
  }
}
