import Posix
import StringTables
import TestSupport
import Testing

@testable import Layers

/// What the top layer stores of a table that it has whole, above two layers.
@Suite struct StoredTableTests {
  private static let name = Array("Main.strings".utf8)
  private let files: TableLayers

  init() throws {
    files = try TableLayers()
    try write("a = middle; b = middle;", at: 1)
    try write("b = main; /* note */ c = main;", at: 2)
  }

  private func write(_ text: String, at layer: Int) throws {
    try (files.paths[layer] / "Main.strings").write(text)
  }

  private func stored() throws -> StoredTable {
    let root = try files.root()
    return try withCName(Self.name) { name throws(Errno) in try root.storedTable(name) }
  }

  private func stored(_ text: String) throws -> StoredTable {
    try write(text, at: 0)
    return try stored()
  }

  private func text(_ stored: StoredTable) -> String? {
    if case .content(let content) = stored { String(decoding: content, as: UTF8.self) } else { nil }
  }

  private func shown() throws -> String {
    let root = try files.root()
    let status = try TableLayers.status(Self.name, in: root)
    return try withCName(Self.name) { name throws(Errno) in
      String(decoding: try root.top.openFile(name, identity: status.identity).readAll(), as: UTF8.self)
    }
  }

  @Test func theDifferenceFromAllLayersBelowIsStored() throws {
    let difference = try stored("a = middle; b = middle; c = top; d = top;")
    #expect(text(difference) == "\"c\" = \"top\";\n\n\"d\" = \"top\";\n")
    #expect(try stored("a = middle; b = middle; /* note */ c = main;") == .nothing)
    #expect(try stored("a = middle; b = middle; c = main;") == .nothing)
    let lacking = try stored("b = middle; c = main;")
    #expect(text(lacking) == StringTable.completenessComment + "\nb = middle; c = main;")
  }

  @Test func whatIsNoTableStaysAsItIs() throws {
    #expect(try stored("a = ;") == .asItIs)
    #expect(try stored("/* bundlefs: complete table, of mine */ a = x;") == .asItIs)
    let list = "<?xml version=\"1.0\"?><plist><dict><key>a</key><true/></dict></plist>"
    #expect(try stored(list) == .marked)
    for layer in [1, 2] { try write("x = ;", at: layer) }
    #expect(try stored("a = 1;") == .asItIs)
  }

  @Test func aTableOfOtherRightsIsKeptWithoutKeys() throws {
    try write("a = middle; b = middle; c = main;", at: 0)
    try (files.paths[0] / "Main.strings").setMode(0o600)
    #expect(try stored() == .content([]))
    try (files.paths[0] / "Main.strings").setMode(0o644)
    try (files.paths[0] / "Main.strings").setAttribute("user.note", [1])
    #expect(try stored() == .content([]))
  }

  @Test("a complete table ends the merging in whatever layer, and its comment is in no merged text")
  func complete() throws {
    try write(StringTable.completenessComment + "\n/* own */\na = middle;\n", at: 1)
    try write("z = top;", at: 0)
    #expect(try shown() == "\"z\" = \"top\";\n\n/* own */\n\"a\" = \"middle\";\n")
    try write("", at: 0)
    #expect(try shown() == "/* own */\n\"a\" = \"middle\";\n")
    try write(StringTable.completenessComment + "\nz = top;\n", at: 0)
    #expect(try shown() == StringTable.completenessComment + "\nz = top;\n")
    #expect(try stored("a = middle; n = 1;") == .content(Array("\"n\" = \"1\";\n".utf8)))
  }

  @Test("a table that a program is writing is shown as it is, and ends the merging in a lower layer")
  func staged() throws {
    try write("z = top;", at: 0)
    try (files.paths[0] / "Main.strings").setAttribute("trusted.bundlefs.table", Array("whole".utf8))
    #expect(try shown() == "z = top;")
    try (files.paths[0] / "Main.strings").removeAttribute("trusted.bundlefs.table")
    try (files.paths[1] / "Main.strings").setAttribute("user.bundlefs.table", Array("whole".utf8))
    #expect(try !shown().contains("main"))
  }

  @Test("keys by which layers differ are named, and survive their encoding")
  func keys() throws {
    try write("\"a/%\\U0000\" = top; b = top;", at: 0)
    let root = try files.root()
    let tables = try root.parts.enumerated().map { index, part in
      (table: StringTable.parse(try (files.paths[index] / "Main.strings").read()).table, layer: part.layer)
    }
    let keys = ComparedKeys(tables)
    #expect(
      keys.keys == [
        ComparedKey(key: "a/%\0", layer: 0, isOverride: false),
        ComparedKey(key: "b", layer: 0, isOverride: true),
        ComparedKey(key: "a", layer: 1, isOverride: false),
      ])
    let name = ComparedName(name: Self.name, kind: .regular, status: .merged, layers: [0, 1, 2], keys: keys)
    let decoded = try #require(ComparisonText(ComparisonText.encoded([name], isWhole: false)))
    #expect(decoded.names == [name])
    let many = StringTable((0..<1500).map { StringTable.Entry(key: "\($0)", value: "") })
    let bounded = ComparedKeys([(many, 0), (StringTable(), 1)])
    #expect(bounded.keys.count == 1000 && bounded.more == 500)
  }
}
