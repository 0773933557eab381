import Posix
import StringTables
import TestSupport
import Testing

@testable import Layers

/// String catalogs among the tables that are merged.
@Suite struct MergedCatalogsTests {
  private static let name: ByteString = "fr.lproj/Main.strings"

  private let files: TableLayers
  private var layers: [ByteString] { files.paths }

  init() throws {
    files = try TableLayers()
    for layer in files.paths { try (layer / "fr.lproj").makeDirectory() }
  }

  private func root(foldsNames: Bool = false, device: String? = nil) throws -> MergedDirectory {
    try files.root(foldsNames: foldsNames, device: device)
  }

  private func directory(_ name: ByteString, in root: MergedDirectory) throws -> MergedDirectory {
    let found = try withCName(name.bytes) { name throws(Errno) in try root.lookup(name) }
    guard case .directory(let directory, _) = found else {
      throw TestFailure("\(name): \(String(describing: found))")
    }
    return directory
  }

  private func status(_ path: ByteString, in root: MergedDirectory) throws -> FileStatus {
    let directory = try directory(path.parent, in: root)
    let name = try #require(path.bytes.split(separator: UInt8(ascii: "/")).last.map(Array.init))
    return try TableLayers.status(name, in: directory)
  }

  /// The keys and values of a table in the mount's view.
  private func table(_ path: ByteString = Self.name, in root: MergedDirectory) throws -> [String: String] {
    let status = try status(path, in: root)
    let content: [UInt8]
    if let merged = root.top.gate.tables?.table(status.identity) {
      content = merged.content
      #expect(status == merged.status && status.size == UInt64(content.count))
    } else {
      let layer = layers.first { (try? ($0 / path).status().inode) == status.identity.inode }
      content = try #require(try layer.map { try ($0 / path).read() })
    }
    let parsed = StringTable.parse(content)
    #expect(parsed.error == nil)
    return Dictionary(uniqueKeysWithValues: parsed.table.entries.map { ($0.key, $0.value) })
  }

  private func failures(_ root: MergedDirectory) -> [String] {
    (root.top.gate.tables?.failures ?? []).map { "\($0.layer) \(String(decoding: $0.name, as: UTF8.self))" }
  }

  @Test("a catalog contributes at its layer's place, behind the layer's table")
  func order() throws {
    try (layers[0] / "Main.xcstrings").write(
      Catalog.text(["a": ["fr": "0a"], "b": ["fr": "0b", "de": "d"]]))
    try (layers[1] / Self.name).write("a = 1t; b = 1t; c = 1t;")
    try (layers[1] / "Main.xcstrings").write(Catalog.text(["c": ["fr": "1c"], "d": ["fr": "1c"]]))
    try (layers[2] / Self.name).write("d = 2t; e = 2t;")
    try (layers[2] / "Main.xcstrings").write(Catalog.text(["e": ["fr": "2c"], "f": ["fr": "2c"], "g": [:]]))
    let root = try root()
    #expect(
      try table(in: root) == ["a": "0a", "b": "0b", "c": "1t", "d": "1c", "e": "2t", "f": "2c"])
    let status = try status(Self.name, in: root)
    #expect(root.top.gate.tables?.layers(of: status.identity) == [0, 1, 2])
    // Owner and mode are the topmost table's, the time is the latest of all.
    #expect(try UInt32(status.mode & 0o7777) == UInt32((layers[1] / Self.name).status().permissions))
    let files = layers.map { $0 / "Main.xcstrings" } + layers[1...].map { $0 / Self.name }
    #expect(try status.modified == files.map { try $0.status().modified }.max())
  }

  @Test("a single table has the keys of its own layer's catalog, and a catalog alone makes no table")
  func single() throws {
    try (layers[2] / Self.name).write("a = t;")
    try (layers[2] / "Main.xcstrings").write(Catalog.text(["b": ["fr": "c"], "k": ["de": "x"]]))
    try (layers[2] / "de.lproj").makeDirectory()
    try (layers[2] / "Main.strings").write("a = unlocalized;")
    try (layers[2] / "fr.lproj/Other.strings").write("a = t;")
    let root = try root()
    #expect(try table(in: root) == ["a": "t", "b": "c"])
    #expect(try table("fr.lproj/Other.strings", in: root) == ["a": "t"])
    #expect(throws: TestFailure.self) { try status("de.lproj/Main.strings", in: root) }
    let found = try withCName(Array("Main.strings".utf8)) { name throws(Errno) in try root.lookup(name) }
    #expect(found?.attributes.identity.isMergedTable == false)
  }

  @Test("a catalog without the language leaves the table's file as it is")
  func otherLanguages() throws {
    try (layers[0] / "Main.xcstrings").write(Catalog.text(["a": ["de": "x"], "b": ["fr-CA": "x"]]))
    try (layers[2] / Self.name).write("a = t;")
    let root = try root()
    #expect(try !status(Self.name, in: root).identity.isMergedTable && failures(root).isEmpty)
    // The languages of both folders are spelled otherwise in the catalog.
    for folder in ["fr_ca.lproj", "pt-BR.lproj"] as [ByteString] {
      try (layers[2] / folder).makeDirectory()
      try (layers[2] / folder / "Main.strings").write("a = t;")
    }
    try (layers[1] / "Main.xcstrings").write(Catalog.text(["p": ["pt_BR": "olá"]]))
    #expect(try table("fr_ca.lproj/Main.strings", in: root) == ["a": "t", "b": "x"])
    #expect(try table("pt-BR.lproj/Main.strings", in: root) == ["a": "t", "p": "olá"])
  }

  @Test("what hides a file hides a catalog and those below")
  func hidden() throws {
    try (layers[2] / Self.name).write("a = t;")
    for layer in layers {
      try (layer / "Main.xcstrings").write(Catalog.text(["a": ["fr": "c"], "b": ["fr": "c"]]))
    }
    let root = try root()
    #expect(try table(in: root) == ["a": "c", "b": "c"])
    for make: (ByteString) throws -> Void in [
      { try $0.makeWhiteout() }, { try $0.makeLink(to: "Other.xcstrings") }, { try $0.makeDirectory() },
    ] {
      (layers[0] / "Main.xcstrings").removeTree()
      try make(layers[0] / "Main.xcstrings")
      #expect(try table(in: root) == ["a": "t"])
    }
    (layers[0] / "Main.xcstrings").removeTree()
    try (layers[0] / ".wh.Main.xcstrings").write("")
    #expect(try table(in: root) == ["a": "t"])
    try (layers[0] / "Main.xcstrings").write(Catalog.text(["z": ["fr": "c"]]))
    #expect(try table(in: root) == ["a": "t", "z": "c"])
  }

  @Test("a catalog that is malformed, too large, or not for all readers is reported, and the others count")
  func unusable() throws {
    try (layers[0] / "Main.xcstrings").write("{\"strings\": {\"a\": }")
    try (layers[1] / "Main.xcstrings").write(Catalog.text(["b": ["fr": "1c"]]))
    try (layers[2] / Self.name).write("c = t;")
    try (layers[2] / "Main.xcstrings").write(Catalog.text(["d": ["fr": "2c"]]))
    let root = try root()
    #expect(try table(in: root) == ["b": "1c", "c": "t", "d": "2c"])
    #expect(failures(root) == ["0 Main.xcstrings"])
    try (layers[1] / "Main.xcstrings").setMode(0o600)
    try (layers[2] / "Main.xcstrings").setSize(MergedTables.largest + 1)
    #expect(try table(in: root) == ["c": "t"])
    #expect(Set(failures(root)) == ["0 Main.xcstrings", "1 Main.xcstrings", "2 Main.xcstrings"])
    try (layers[1] / "Main.xcstrings").setMode(0o644)
    for layer in [layers[0], layers[2]] { try (layer / "Main.xcstrings").remove() }
    #expect(try table(in: root) == ["b": "1c", "c": "t"] && failures(root).isEmpty)
    // The file rule, as without catalogs.
    try (layers[2] / Self.name).write("c = ")
    #expect(try !status(Self.name, in: root).identity.isMergedTable)
    #expect(failures(root) == ["2 Main.strings"])
  }

  @Test("a text with plural forms gives that of most numbers, and one with further variables nothing")
  func variations() throws {
    try (layers[2] / Self.name).write("files = t;")
    try (layers[0] / "Main.xcstrings").write(
      """
      {"sourceLanguage": "en", "strings": {
        "n": {"localizations": {"fr": {"variations": {"plural": {
          "one": {"stringUnit": {"value": "un"}}, "other": {"stringUnit": {"value": "%lld"}}}}}}},
        "tap": {"localizations": {"fr": {"variations": {"device": {
          "ipad": {"stringUnit": {"value": "pad"}}, "other": {"stringUnit": {"value": "clic"}}}}}}},
        "files": {"localizations": {"fr": {"stringUnit": {"value": "%#@f@"}, "substitutions": {
          "f": {"variations": {"plural": {"other": {"stringUnit": {"value": "%arg"}}}}}}}}}
      }, "version": "1.0"}
      """)
    #expect(try table(in: root()) == ["files": "t", "n": "%lld", "tap": "clic"])
    #expect(try table(in: root(device: "ipad"))["tap"] == "pad")
  }

  @Test("where case does not count, neither does it in the names of catalogs and folders")
  func folded() throws {
    try (layers[0] / "MAIN.XCStrings").write(Catalog.text(["a": ["fr": "c"]]))
    try (layers[2] / "FR.LPROJ").makeDirectory()
    try (layers[2] / "FR.LPROJ/main.strings").write("b = t;")
    let folded = try root(foldsNames: true)
    #expect(try table("fr.lproj/Main.strings", in: folded) == ["a": "c", "b": "t"])
    #expect(
      try status("Fr.lproj/Main.strings", in: folded).identity
        == status("fr.lproj/MAIN.strings", in: folded).identity)
  }

  @Test("each change makes another file, also in one tick of the clock")
  func identities() throws {
    try (layers[2] / Self.name).write("a = t;")
    let root = try root()
    var seen: Set<FileIdentity> = [try status(Self.name, in: root).identity]
    for value in ["x", "y", "z"] {
      try (layers[1] / "Main.xcstrings").write(Catalog.text(["c": ["fr": value]]))
      #expect(try seen.insert(status(Self.name, in: root).identity).inserted)
      #expect(try table(in: root) == ["a": "t", "c": value])
    }
    try (layers[1] / "Main.xcstrings").remove()
    #expect(try !seen.insert(status(Self.name, in: root).identity).inserted)
  }
}

private enum Catalog {
  /// A catalog with the texts of keys in languages.
  static func text(_ texts: [String: [String: String]]) -> String {
    func object(_ members: [String: String]) -> String {
      "{" + members.map { "\"\($0)\": \($1)" }.joined(separator: ", ") + "}"
    }
    let keys = texts.mapValues { languages in
      let units = languages.mapValues { object(["stringUnit": object(["value": "\"\($0)\""])]) }
      return object(["localizations": object(units)])
    }
    return object(["sourceLanguage": "\"en\"", "strings": object(keys), "version": "\"1.0\""])
  }
}
