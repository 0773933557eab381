import Fuse
import Glibc
import TestSupport
import Testing

@testable import Layers
@testable import Posix
@testable import Volume

/// The index of the names in directories of many layers.
@Suite struct NameIndexTests {
  /// A store over four layers, `0` on top, whose changes a test reports itself.
  private struct Fixture {
    let folder: TemporaryFolder
    let watcher = WatcherStub()
    let store: NodeStore

    init(foldsNames: Bool = false, _ fill: (TemporaryFolder) throws -> Void) throws {
      let folder = try TemporaryFolder()
      self.folder = folder
      let roots = try (0..<4).map { try folder.folder(ByteString("\($0)")) }
      try fill(folder)
      let layers = try roots.enumerated().map { index, root in
        try DirectoryLayer(path: root.bytes, index: index, covered: nil, foldsNames: foldsNames)
      }
      store = try NodeStore(LayerStack(layers: layers), watcher: watcher, cache: .coherent, budget: 1000)
      watcher.isExhausted.withLock { $0 = false }
      watcher.isUpToDate.withLock { $0 = true }
    }

    func has(_ name: String) throws -> Bool {
      let merged = try store.merged(of: .root)
      return try withCName(Array(name.utf8)) { name throws(Errno) in
        try store.lookUp(name, in: .root, merged) != nil
      }
    }

    func places(of name: String) throws -> [Int]? {
      let merged = try store.merged(of: .root)
      return try withCName(Array(name.utf8)) { name throws(Errno) in
        store.places(of: name, in: .root, merged)?.map(\.part)
      }
    }

    func list() throws { _ = try store.list(try store.merged(of: .root), .root) }

    func report(_ name: String, _ mask: InotifyEvent.Mask, layer: Int) {
      let event = InotifyEvent(watch: 1, mask: mask, name: Array(name.utf8), cookie: 0, size: 16)
      store.indexes.record(event, in: .root, layer: layer, countsOwnAttributes: true)
    }
  }

  @Test("the layers that have something of a name") func places() throws {
    let fixture = try Fixture { folder in
      try (folder / "1/both").write("")
      try (folder / "3/both").write("")
      try (folder / "2/.wh.hidden").write("")
      try (folder / "3/hidden").write("")
    }
    #expect(try fixture.places(of: "both") == nil)
    try fixture.list()
    #expect(try fixture.places(of: "both") == [1, 3])
    #expect(try fixture.places(of: "hidden") == [2, 3])
    #expect(try fixture.places(of: "none") == [])
    #expect(try !fixture.has("hidden"))
    #expect(try fixture.has("both"))
  }

  @Test("lookups make an index") func lookups() throws {
    let fixture = try Fixture { try ($0 / "3/file").write("") }
    for number in 0...NameIndexes.fewestLookups {
      #expect(try fixture.places(of: "file") == nil, "\(number)")
    }
    #expect(try fixture.places(of: "file") == [3])
  }

  @Test("spellings are one name where case does not count") func spellings() throws {
    let fixture = try Fixture(foldsNames: true) { folder in
      try (folder / "1/File").write("")
      try (folder / "2/FILE").write("")
    }
    for _ in 0...NameIndexes.fewestLookups { _ = try fixture.has("file") }
    #expect(try fixture.places(of: "fIlE") == [1, 2])
    fixture.report("fiLE", .created, layer: 0)
    #expect(try fixture.places(of: "fIlE") == nil)
  }

  @Test("a name that has changed is looked up in all layers") func changes() throws {
    let fixture = try Fixture { try ($0 / "3/file").write("") }
    try fixture.list()
    try (fixture.folder / "0/new").write("")
    // The index is asked, which no event has reached.
    #expect(try !fixture.has("new"))
    fixture.report("new", .created, layer: 0)
    #expect(try fixture.has("new"))
    #expect(try fixture.places(of: "other") == [])
    fixture.report(".wh.file", .created, layer: 1)
    #expect(try fixture.places(of: "file") == nil)
  }

  @Test("events that are not handled yet count") func pendingEvents() throws {
    let fixture = try Fixture { try ($0 / "3/file").write("") }
    try fixture.list()
    try (fixture.folder / "0/new").write("")
    fixture.watcher.isUpToDate.withLock { $0 = false }
    #expect(try fixture.has("new"))
  }

  @Test("many changes, an event of a part itself, and lost events drop an index") func drops() throws {
    for drop in 0..<3 {
      let fixture = try Fixture { try ($0 / "3/file").write("") }
      try fixture.list()
      #expect(try fixture.places(of: "file") == [3])
      switch drop {
      case 0: for number in 0...NameIndexes.changeLimit { fixture.report("\(number)", .created, layer: 2) }
      case 1: fixture.report("", [.deletedSelf], layer: 2)
      default: fixture.store.indexes.removeAll()
      }
      #expect(try fixture.places(of: "file") == nil, "\(drop)")
    }
  }

  @Test("a change while the names are listed counts") func changeWhileListing() throws {
    let fixture = try Fixture { try ($0 / "3/file").write("") }
    let merged = try fixture.store.merged(of: .root)
    let making = try #require(fixture.store.indexes.begin(.root, merged))
    let (_, index) = try merged.listIndexing()
    try (fixture.folder / "0/new").write("")
    fixture.report("new", .created, layer: 0)
    fixture.store.indexes.end(making, index, isWorthRetrying: true)
    #expect(try fixture.has("new"))
    #expect(try fixture.places(of: "file") == [3])
  }

  @Test("an index takes at most 64 bytes a name") func memory() throws {
    let fixture = try Fixture { folder in
      for number in 0..<2000 { try (folder / ByteString("\(number % 4)/texture-\(number).dds")).write("") }
    }
    try fixture.list()
    #expect(fixture.store.indexes.size / 2000 <= 64)
    #expect(fixture.store.indexes.size / 2000 >= 20)
  }
}
