import Fuse
import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers
@testable import Volume

/// A watcher that has no watches left, or as many as are asked for.
final class WatcherStub: NodeWatcher {
  let isExhausted = Locked(true)
  let isUpToDate = Locked(false)
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
  var hasHandledAll: Bool { isUpToDate.withLock { $0 } }
  func fault(of layer: Int) -> String? { nil }
  func directoryIsUncovered() {}
  func partsMayHaveChanged(of node: NodeID) {}
  func directoryWasRenumbered(_ node: NodeID) {}
  func spellingWasEvicted(_ key: EntryKey) {}
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

  /// Looks up a directory.
  func lookUp(_ name: String, in parent: NodeID = .root) throws -> NodeID {
    let merged = try store.merged(of: parent)
    let found = try withCName(Array(name.utf8)) { name throws(Errno) in try merged.lookup(name) }
    let entry = try #require(found)
    return try withCName(Array(name.utf8)) { name throws(Errno) in
      try store.entry(entry, name, in: parent, merged).node
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

  @Test("a lookup that finds another directory gives it a node of its own, before any poll")
  func replaced() throws {
    let fixture = try StoreFixture()
    let (path, renamed) = (try fixture.folder.folder("1/d"), fixture.folder / "1/renamed")
    _ = try fixture.folder.folder("1/d/old")
    let former = try fixture.lookUp("d")
    try path.rename(to: renamed)
    _ = try fixture.folder.folder("1/d")
    let present = try fixture.lookUp("d")
    #expect(present != former)
    #expect(try fixture.lookUp("d") == present)
    func shows(_ name: String, _ node: NodeID) throws -> Bool {
      let merged = try fixture.store.merged(of: node)
      return try withCName(Array(name.utf8)) { name throws(Errno) in try merged.lookup(name) } != nil
    }
    #expect(try shows("old", former))
    #expect(try !shows("old", present))
    #expect(try fixture.lookUp("renamed") == former, "the kernel moves it")
    #expect(fixture.store.table.withLock { $0.checkInvariants() } == [])
    for (node, lookups) in [(former, 2), (present, 2)] {
      fixture.store.forget(node, lookups: UInt64(lookups))
    }
    #expect(fixture.store.table.withLock { $0.count } == 1)
  }

  @Test("a renamed directory is not moved below itself where the kernel still has its former tree")
  func exchanged() throws {
    let fixture = try StoreFixture()
    let layer = fixture.folder / "1"
    try (layer / "a/b").makeDirectories()
    let upper = try fixture.lookUp("a")
    let lower = try fixture.lookUp("b", in: upper)
    // `b` now holds what was above it.
    try (layer / "a/b").rename(to: layer / "b")
    try (layer / "a").rename(to: layer / "b/x")
    try (layer / "a").makeDirectory()
    #expect(try fixture.lookUp("a") != upper)
    let found = try fixture.lookUp("x", in: lower)
    #expect(found != upper)
    #expect(try fixture.store.path(of: found).last == Array("x".utf8))
    #expect(fixture.store.table.withLock { $0.checkInvariants() } == [])
  }

  @Test("directories are resolved without recursion, also when a barrier comes in between")
  func deepTree() throws {
    let fixture = try StoreFixture()
    let depth = 8_000
    let layer = try (fixture.folder / "1").call("open") { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    defer { _ = try? Command("rm", "-rf", (fixture.folder / "1").text).run(timeout: 120) }
    var (directory, deepest) = (layer, NodeID.root)
    for _ in 0..<depth {
      try #require(mkdirat(directory, "d", 0o755) == 0)
      let below = openat(directory, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      close(directory)
      directory = below
      deepest = try fixture.lookUp("d", in: deepest)
    }
    close(directory)
    _ = fixture.store.markUncovered()
    let watched = Locked(0)
    let store = fixture.store
    fixture.watcher.willWatch.withLock {
      $0 = {
        let count = watched.withLock { count in
          count += 1
          return count
        }
        if count % 6_000 == 0 { _ = store.markUncovered() }
      }
    }
    #expect(try fixture.store.merged(of: deepest).parts.map(\.layer) == [1])
    #expect(watched.withLock { $0 } > depth)
  }

  @Test("what is being resolved at a barrier is resolved once more", arguments: [true, false])
  func barrierInBetween(isKnown: Bool) throws {
    let fixture = try StoreFixture()
    _ = try fixture.folder.folder("1/d")
    let store = fixture.store
    _ = try store.merged(of: .root)
    let node: NodeID
    if isKnown {
      node = try fixture.lookUp("d")
      _ = store.pollUncovered()
      _ = try store.merged(of: .root)
    } else {
      node = store.table.withLock { table in
        let slot = table.lookUpDirectory(Array("d".utf8), in: NodeTable.root, inodeNumber: 1 << 63)
        return table.number(of: slot)
      }
    }
    let asked = Locked(0)
    fixture.watcher.willWatch.withLock {
      $0 = {
        let isFirst = asked.withLock { asked in
          asked += 1
          return asked == 1
        }
        if isFirst { _ = store.markUncovered() }
      }
    }
    _ = try store.merged(of: node)
    #expect(asked.withLock { $0 } > 1)
    #expect(try !fixture.state(node).needsRefresh)
  }

  @Test("a barrier finds every directory and file that is not covered")
  func takenBack() throws {
    let fixture = try StoreFixture()
    for name in ["a", "b"] { _ = try fixture.folder.folder(ByteString("1/\(name)")) }
    let nodes = try ["a", "b"].map { try fixture.lookUp($0) }
    fixture.store.recordUncovered(nodes[0])
    let found = fixture.store.markUncovered()
    #expect(Set(found.directories) == Set(nodes + [.root]) && found.files == [nodes[0]])
    // The root can no longer be resolved; what was cached before may still be.
    fixture.store.table.withLock { table in _ = table.unresolve(NodeTable.root) }
    #expect(fixture.store.markUncovered().directories.contains(.root))
    #expect(fixture.store.table.withLock { $0.checkInvariants() } == [])
  }

  @Test("missing names are recorded while the kernel may have cached them, within a limit")
  func negativeReplies() {
    var replies = NegativeReplies()
    let start = TimeSpec(seconds: 100, nanoseconds: 0)
    let end = start.advanced(byMilliseconds: 2000)
    func add(_ name: String, in directory: NodeID, now: TimeSpec) -> Bool {
      replies.add(Array(name.utf8), in: directory, until: end, now: now)
    }
    for number in 0..<NegativeReplies.capacity {
      #expect(add("\(number)", in: NodeID(rawValue: UInt64(number % 7)), now: start))
    }
    #expect(!add("A", in: .root, now: start))
    let removed = replies.remove(NodeID(rawValue: 3))
    #expect(Set(removed).count == removed.count && removed.contains(Array("10".utf8)))
    #expect(replies.count == NegativeReplies.capacity - removed.count)
    for number in 0..<removed.count {
      #expect(add("x\(number)", in: .root, now: start))
    }
    #expect(add("A", in: .root, now: end), "the others are outdated")
    #expect(replies.count == 1)
    let last = replies.remove(.root)
    #expect(last == [[65]])
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
