import Bundles
import Foundation
import Posix
import TestSupport
import Testing

@testable import BundleResources

/// What a bundle caches, as long as nothing has changed.
@Suite struct LookupCacheTests {
  private func fixture() throws -> ResourceFixture {
    let fixture = try ResourceFixture()
    try fixture.make("a.txt", "main")
    try fixture.make("fr.lproj/Localizable.strings", "a = main;")
    try fixture.override("fr.lproj/Localizable.strings", "b = substitution;")
    return fixture
  }

  private func bundle(_ fixture: ResourceFixture, caches: Bool = true) throws -> LayeredBundle {
    try LayeredBundle(
      main: fixture.main.url, substitution: [fixture.substitution.url],
      options: LookupOptions(languages: ["fr", "en"], cachesLookups: caches))
  }

  /// Looks something up until the bundle watches its layers.
  private func watch(_ bundle: LayeredBundle) throws {
    let isWatching = try eventually(within: 30) {
      _ = bundle.url(forResource: "a.txt")
      return try bundle.layers().cache?.isWatching == true
    }
    if !isWatching { throw TestFailure("the layers are not watched") }
  }

  @Test(
    "a look-up that was made before asks the layers for nothing", .timeLimit(.minutes(1)),
    arguments: [BundleForm.folders, .mount])
  func warm(form: BundleForm) throws {
    let fixture = try fixture()
    try fixture.withBundle(form) { bundle in
      try watch(bundle)
      let url = bundle.url(forResource: "a.txt")
      #expect(url != nil && bundle.url(forResource: "none") == nil)
      for key in ["a", "b", "c"] { _ = bundle.localizedString(forKey: key) }
      let layers = try bundle.layers()
      for name in ["a.txt", "none"] {
        let query = ResourceQuery(name: name, ext: nil, subpath: nil, localization: nil)
        let cached = layers.url(query) {
          Issue.record("a look-up of \(name)")
          return nil
        }
        #expect(cached == (name == "none" ? nil : url))
      }
      let (tables, _) = layers.tables(TableQuery(nil, nil)) {
        Issue.record("a look-up of tables")
        return []
      }
      #expect(tables.reached.count == 2 && tables.files.count == 2)
      bundle.invalidateCaches()
      var isAsked = false
      _ = try bundle.layers().tables(TableQuery(nil, nil)) {
        isAsked = true
        return []
      }
      #expect(isAsked)
    }
  }

  @Test("nothing is cached without the option, nor of archives")
  func off() throws {
    let fixture = try fixture()
    #expect(try bundle(fixture, caches: false).layers().cache == nil)
    try fixture.withBundle(.archives) { bundle in
      let isCached = try bundle.layers().cache != nil
      #expect(!isCached)
    }
  }

  @Test("a change of any kind shows in the next call", .timeLimit(.minutes(2)), arguments: Seeds.chosen(2))
  func changes(seed: UInt64) throws {
    let fixture = try fixture()
    let (cached, plain) = (try bundle(fixture), try bundle(fixture, caches: false))
    var random = SplitMix64(seed: seed)
    var changes = RandomChanges(fixture)
    for round in 0..<120 {
      // Otherwise many a change would be made while nothing is watched.
      if round.isMultiple(of: 4) { try watch(cached) }
      let change = try changes.make(round, &random)
      for name in RandomChanges.names + ["a.txt"] {
        #expect(cached.url(forResource: name) == plain.url(forResource: name), "\(name) after \(change)")
      }
      for key in ["a", "b", "c"] {
        #expect(cached.localizedString(forKey: key) == plain.localizedString(forKey: key), "after \(change)")
      }
    }
  }

  @Test("an edit by another hard link shows, too", .timeLimit(.minutes(1)))
  func hardLink() throws {
    let fixture = try fixture()
    let bundle = try bundle(fixture)
    try watch(bundle)
    let (table, other) = (fixture.main / "fr.lproj/Localizable.strings", fixture.folder / "other")
    #expect(bundle.localizedString(forKey: "a") == "main")
    // A link outside of the layers is no event in their directories.
    try other.makeHardLink(of: table)
    for round in 0..<3 {
      try other.write("a = \(round);")
      #expect(bundle.localizedString(forKey: "a") == "\(round)")
    }
  }

  @Test("a table that is replaced before it is read is looked up again", .timeLimit(.minutes(1)))
  func replacedTable() throws {
    let fixture = try fixture()
    let bundle = try bundle(fixture)
    try watch(bundle)
    let layers = try bundle.layers()
    let cache = try #require(layers.cache)
    let names = TableNames(tables: [Array("Localizable.strings".utf8)], catalogs: [])
    let former = try layers.lookup.tables(names) { _ in nil }
    #expect(former.count == 2)
    try (fixture.substitution / "fr.lproj/Localizable.strings").replace("a = new;")
    let (_, found) = cache.find(in: layers) { _ in Int?.none }
    let ticket = try #require(found)
    cache.insert(ticket) { $0.tables[TableQuery(nil, nil)] = SearchedTables(former) }
    #expect(bundle.localizedString(forKey: "a") == "new")
  }

  @Test("a layer that is replaced is watched again", .timeLimit(.minutes(1)))
  func replaced() throws {
    let fixture = try fixture()
    let bundle = try bundle(fixture)
    try watch(bundle)
    for round in 0..<3 {
      try fixture.substitution.rename(to: fixture.folder / ByteString("old\(round)"))
      #expect(bundle.localizedString(forKey: "a") == (round == 0 ? "main" : "\(round - 1)"))
      // The former directory serves until there is another one.
      try (fixture.folder / ByteString("old\(round)/a.txt")).write("a")
      #expect(bundle.url(forResource: "a.txt")?.path == fixture.substitution.text + "/a.txt")
      try fixture.substitution.makeDirectory()
      try fixture.override("fr.lproj/Localizable.strings", "a = \(round);")
      #expect(bundle.localizedString(forKey: "a") == "\(round)")
      try watch(bundle)
      #expect(bundle.localizedString(forKey: "a") == "\(round)")
    }
  }

  @Test("tasks that look something up while it changes never see what was before", .timeLimit(.minutes(2)))
  func concurrent() async throws {
    let fixture = try fixture()
    let bundle = try bundle(fixture)
    let (finished, begun) = (Locked(0), Locked(0))
    let table = fixture.substitution / "fr.lproj/Localizable.strings"
    try table.write("a = 0;")
    try watch(bundle)
    let isDone = Locked(false)
    try await withThrowingTaskGroup(of: Int.self) { group in
      group.addTask {
        defer { isDone.withLock { $0 = true } }
        for round in 1...200 {
          begun.withLock { $0 = round }
          try table.replace("a = \(round);")
          finished.withLock { $0 = round }
          if round.isMultiple(of: 20) { try watch(bundle) }
        }
        return 0
      }
      for _ in 0..<6 {
        group.addTask {
          var count = 0
          while !isDone.withLock({ $0 }) {
            let least = finished.withLock { $0 }
            let found = bundle.localizedString(forKey: "a")
            let most = begun.withLock { $0 }
            #expect(Int(found).map { (least...most).contains($0) } == true, "\(found), \(least) to \(most)")
            count += 1
          }
          return count
        }
      }
      try await group.waitForAll()
    }
    #expect(bundle.localizedString(forKey: "a") == "200")
  }

  @Test("the cache does not grow without end", .timeLimit(.minutes(1)))
  func bounds() throws {
    let fixture = try fixture()
    let bundle = try bundle(fixture)
    try watch(bundle)
    let layers = try bundle.layers()
    let cache = try #require(layers.cache)
    let (_, found) = cache.find(in: layers) { _ in Int?.none }
    let ticket = try #require(found)
    for number in 0..<5000 {
      let query = ResourceQuery(name: "\(number)", ext: nil, subpath: nil, localization: nil)
      cache.insert(ticket) { $0.urls[query] = .some(nil) }
      cache.insert(ticket) { $0.tables[TableQuery("\(number)", nil)] = SearchedTables([]) }
    }
    let (counts, _) = cache.find(in: layers) { ($0.urls.count, $0.tables.count) }
    #expect((1...4096).contains(counts?.0 ?? 0) && (1...256).contains(counts?.1 ?? 0))
  }
}

/// Changes of a fixture's layers.
struct RandomChanges {
  static let names = ["x.txt", "y.txt", "sub/x.txt"]
  private static let files: [ByteString] = [
    "x.txt", "y.txt", "sub/x.txt", "fr.lproj/x.txt", "en.lproj/y.txt", "fr.lproj/Localizable.strings",
    "en.lproj/Localizable.strings", "Localizable.strings", "Info.plist",
  ]
  private static let folders: [ByteString] = ["sub", "fr.lproj", "en.lproj", "de.lproj"]
  private let fixture: ResourceFixture
  private let outside: ByteString

  init(_ fixture: ResourceFixture) {
    self.fixture = fixture
    outside = fixture.folder / "outside"
  }

  /// Makes one change.
  /// - Returns: what it was.
  mutating func make(_ round: Int, _ random: inout SplitMix64) throws -> String {
    let layer = random.pick([fixture.main, fixture.substitution])
    let file = layer / random.pick(Self.files)
    let folder = layer / random.pick(Self.folders)
    let content =
      file.text.hasSuffix("plist")
      ? "{ CFBundleDevelopmentRegion = \(random.pick(["en", "de"])); }"
      : "\(random.pick(["a", "b", "c"])) = \"\(round)\";"
    let kind = random.number(0...10)
    try? change(kind, file, folder, content, to: layer / random.pick(Self.folders))
    return "\(kind) of \(file.text), \(folder.text)"
  }

  private func change(
    _ kind: Int, _ file: ByteString, _ folder: ByteString, _ content: String, to other: ByteString
  ) throws {
    switch kind {
    case 0, 1:
      try file.parent.makeDirectories()
      try file.write(content)
    case 2: try file.replace(content)
    case 3: try file.remove()
    case 4: try folder.rename(to: other)
    case 5:
      // In place, by another name.
      try? outside.remove()
      try outside.makeHardLink(of: file)
      try outside.write(content)
    case 9: try outside.overwrite([UInt8](content.utf8), at: 0)
    case 6: try (folder / ".wh..wh..opq").write("")
    case 7: try (folder / ".wh..wh..opq").remove()
    case 8: try folder.makeDirectories()
    default: try file.rename(to: folder / "x.txt")
    }
  }
}
