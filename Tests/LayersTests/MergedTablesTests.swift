import Posix
import StringTables
import TestSupport
import Testing

@testable import Layers

@Suite struct MergedTablesTests {
  private let files: TableLayers
  private var layers: [ByteString] { files.paths }

  init() throws { files = try TableLayers() }

  private func root(merging: Bool = true, foldsNames: Bool = false) throws -> MergedDirectory {
    try files.root(merging: merging, foldsNames: foldsNames)
  }

  private func status(_ name: ByteString, in root: MergedDirectory) throws -> FileStatus {
    try TableLayers.status(name.bytes, in: root)
  }

  private func content(_ name: ByteString, in root: MergedDirectory) throws -> String {
    let status = try status(name, in: root)
    let file = try withCName(name.bytes) { name throws(Errno) in
      try root.parts.lazy.compactMap { part in try? part.openFile(name, identity: status.identity) }.first
        .orThrow(.staleFileHandle)
    }
    #expect(try file.attributes() == status || !status.identity.isMergedTable)
    return String(decoding: try file.readAll(), as: UTF8.self)
  }

  private func table(_ text: String) -> [String: String] {
    let parsed = StringTable.parse(Array(text.utf8))
    #expect(parsed.error == nil)
    return Dictionary(uniqueKeysWithValues: parsed.table.entries.map { ($0.key, $0.value) })
  }

  private func write(_ texts: [String?], _ name: ByteString = "Main.strings") throws {
    for (layer, text) in zip(layers, texts) { if let text { try (layer / name).write(text) } }
  }

  @Test func theUpperTableWinsForEachKey() throws {
    try write(["/* note */\n\"a\" = \"top\";\n", "\"b\" = \"middle\";", "a = main; b = main; c = main;"])
    let root = try root()
    let text = try content("Main.strings", in: root)
    #expect(table(text) == ["a": "top", "b": "middle", "c": "main"] && text.contains("/* note */"))
    let status = try status("Main.strings", in: root)
    #expect(status.links == 1 && status.size == UInt64(text.utf8.count) && status.identity.isMergedTable)
    #expect(root.top.gate.tables?.layers(of: status.identity) == [0, 1, 2])
    let latest = try layers.map { try ($0 / "Main.strings").status().modified }.max()
    #expect(status.modified == latest)
  }

  @Test("a table that the topmost one's readers may not read is left out, until they may")
  func readers() throws {
    try write(["a = top;", "b = middle;", "c = main;"])
    try (layers[1] / "Main.strings").setOwner(1000, group: 1000)
    try (layers[2] / "Main.strings").setMode(0o600)
    let root = try root()
    #expect(try table(content("Main.strings", in: root)) == ["a": "top", "b": "middle"])
    let failures = try #require(root.top.gate.tables?.failures)
    #expect(failures.map(\.layer) == [2] && failures[0].reason.contains("not readable by all"))
    try (layers[1] / "Main.strings").setMode(0o640)
    #expect(try content("Main.strings", in: root) == "a = top;")
    try (layers[0] / "Main.strings").setMode(0o600)
    // Only root may read it, who may read all.
    #expect(try table(content("Main.strings", in: root)) == ["a": "top", "b": "middle", "c": "main"])
    #expect(try status("Main.strings", in: root).mode & 0o777 == 0o600)
    for layer in layers[1...] { try (layer / "Main.strings").setMode(0o644) }
    #expect(try table(content("Main.strings", in: root)) == ["a": "top", "b": "middle", "c": "main"])
    #expect(root.top.gate.tables?.failures.isEmpty == true)
  }

  @Test("a table with an ACL is left out, and shown as it is on top")
  func accessLists() throws {
    try write(["a = top;", "b = middle;", "c = main;"])
    let list = ACLValue.list(
      (.owner, 6, nil), (.user, 4, 1000), (.owningGroup, 4, nil), (.mask, 4, nil), (.other, 4, nil))
    try (layers[1] / "Main.strings").setAttribute("system.posix_acl_access", list)
    let root = try root()
    #expect(try table(content("Main.strings", in: root)) == ["a": "top", "c": "main"])
    try (layers[0] / "Main.strings").setAttribute("system.posix_acl_access", list)
    #expect(try content("Main.strings", in: root) == "a = top;")
    #expect(try !status("Main.strings", in: root).identity.isMergedTable)
    for layer in layers[..<2] { try (layer / "Main.strings").removeAttribute("system.posix_acl_access") }
    #expect(try table(content("Main.strings", in: root)) == ["a": "top", "b": "middle", "c": "main"])
  }

  @Test("without the option, with one table, and under other names nothing is merged")
  func others() throws {
    try write(["a = top;", nil, "b = main;"])
    try write(["a = top;", nil, "b = main;"], "Main.string")
    try write(["a = top;", nil, "b = main;"], ".strings")
    try write([nil, nil, "b = main;"], "Sole.strings")
    #expect(try content("Main.strings", in: root(merging: false)) == "a = top;")
    let root = try root()
    #expect(try content("Main.string", in: root) == "a = top;" && content(".strings", in: root) == "a = top;")
    #expect(try content("Sole.strings", in: root) == "b = main;")
  }

  @Test("a table in UTF-16 that one layer has is converted, whichever layer that is, and others are not")
  func converted() throws {
    let text = "/* note */\n\"a\" = \"größer\";\n"
    var (wide, bigEndian): ([UInt8], [UInt8]) = ([0xFF, 0xFE], [])
    for unit in text.utf16 {
      wide += [UInt8(truncatingIfNeeded: unit), UInt8(unit >> 8)]
      bigEndian += [UInt8(unit >> 8), UInt8(truncatingIfNeeded: unit)]
    }
    try (layers[2] / "Low.strings").write(wide)
    try (layers[0] / "High.strings").write(bigEndian)
    try (layers[1] / "Above.strings").write(wide)
    try (layers[2] / "Above.strings").makeDirectory()
    try (layers[0] / "Broken.strings").write([0xFF, 0xFE, 0x22, 0x00, 0x61] as [UInt8])
    try write([nil, "a = middle;"], "Plain.strings")
    let root = try root()
    for name in ["Low.strings", "High.strings", "Above.strings"] as [ByteString] {
      #expect(try content(name, in: root) == text, "\(name)")
      let status = try status(name, in: root)
      #expect(status.identity.isMergedTable && status.size == UInt64(text.utf8.count), "\(name)")
    }
    #expect(try !status("Broken.strings", in: root).identity.isMergedTable)
    #expect(try !status("Plain.strings", in: root).identity.isMergedTable)
    #expect(root.top.gate.tables?.failures.map(\.name) == [Array("Broken.strings".utf8)])
    #expect(try status("Low.strings", in: self.root(merging: false)).size == UInt64(wide.count))
  }

  @Test("whiteouts, links and folders hide the tables below")
  func hidden() throws {
    try write(["a = top;", nil, "b = main;"])
    try (layers[1] / "Main.strings").makeWhiteout()
    try write(["a = top;", "b = middle;", "c = main;"], "Marked.strings")
    try (layers[1] / ".wh.Marked.strings").write("")
    try write(["a = top;", nil, "b = main;"], "Linked.strings")
    try (layers[1] / "Linked.strings").makeLink(to: "Marked.strings")
    try write(["a = top;", nil, "b = main;"], "Folder.strings")
    try (layers[1] / "Folder.strings").makeDirectory()
    let root = try root()
    #expect(try content("Main.strings", in: root) == "a = top;")
    #expect(try table(content("Marked.strings", in: root)) == ["a": "top", "b": "middle"])
    #expect(try content("Linked.strings", in: root) == "a = top;")
    #expect(try content("Folder.strings", in: root) == "a = top;")
  }

  @Test("a table that does not parse follows the file rule, and is reported until it is mended")
  func malformed() throws {
    try write(["a = top;", "b = ;", "c = main;"])
    try write(["a = ", "b = middle;", "c = main;"], "Top.strings")
    let root = try root()
    #expect(try table(content("Main.strings", in: root)) == ["a": "top", "c": "main"])
    #expect(try content("Top.strings", in: root) == "a = ")
    let tables = try #require(root.top.gate.tables)
    #expect(
      Set(tables.failures.map { "\($0.layer) \(String(decoding: $0.name, as: UTF8.self))" })
        == ["1 Main.strings", "0 Top.strings"])
    #expect(tables.failures.allSatisfy { $0.reason.hasPrefix("1:") }, "\(tables.failures.map(\.reason))")
    try (layers[1] / "Main.strings").write("b = middle;")
    try (layers[0] / "Top.strings").remove()
    #expect(tables.failures.isEmpty)
    #expect(try table(content("Main.strings", in: root)) == ["a": "top", "b": "middle", "c": "main"])
    #expect(try table(content("Top.strings", in: root)) == ["b": "middle", "c": "main"])
  }

  @Test("each change makes another file, and what has not changed is the same one in another process")
  func identities() throws {
    try write(["a = top;", nil, "b = main;"])
    let before = try status("Main.strings", in: root()).identity
    #expect(try status("Main.strings", in: root()).identity == before)
    var seen: Set<FileIdentity> = [before]
    let root = try root()
    for text in ["b = new1;", "b = new2;", "b = new2; c = d;"] {
      // In place, perhaps within a tick of the clock.
      try (layers[2] / "Main.strings").write(text)
      #expect(seen.insert(try status("Main.strings", in: root).identity).inserted, "\(text)")
      #expect(try table(content("Main.strings", in: root))["b"] == String(text.dropFirst(4).prefix(4)))
    }
    try (layers[0] / "Main.strings").setMode(0o600)
    let changed = try status("Main.strings", in: root)
    #expect(changed.mode & 0o777 == 0o600 && !seen.contains(changed.identity))
  }

  @Test func caseCountsInTheSuffixAsInNames() throws {
    try write(["a = top;", nil, nil], "MAIN.STRINGS")
    try write([nil, nil, "b = main;"], "Main.strings")
    let folded = try root(foldsNames: true)
    #expect(try table(content("main.Strings", in: folded)) == ["a": "top", "b": "main"])
    #expect(try content("MAIN.STRINGS", in: root()) == "a = top;")
  }

  @Test("tables of all formats are merged, and large ones are not")
  func formats() throws {
    let xml = """
      <?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict><key>x</key><string>ü</string></dict></plist>
      """
    try write(["a = top;", xml, nil])
    try (layers[2] / "Main.strings").write([0xFF, 0xFE] + "u = v;".utf16.flatMap { [UInt8($0 & 0xFF), 0] })
    let root = try root()
    #expect(try table(content("Main.strings", in: root)) == ["a": "top", "x": "ü", "u": "v"])
    try (layers[2] / "Main.strings").setSize(MergedTables.largest + 1)
    #expect(try table(content("Main.strings", in: root)) == ["a": "top", "x": "ü"])
    #expect(root.top.gate.tables?.failures.map(\.layer) == [2])
  }
}

extension Optional {
  fileprivate func orThrow(_ error: Errno) throws(Errno) -> Wrapped {
    guard let self else { throw error }
    return self
  }
}
