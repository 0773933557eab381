import Glibc
import Posix
import StringTables
import TestSupport
import Testing

/// How programs save a table, and the command for it: `$1` is the table, `$2` the file with the new text.
enum TableSaving: String, CaseIterable, Sendable {
  case rename = #"cp "$2" "$1.new" && mv "$1.new" "$1""#
  case renameFromElsewhere = #"cp "$2" "$(dirname "$1")/../aside" && mv "$(dirname "$1")/../aside" "$1""#
  case truncation = #"cat "$2" > "$1""#
  case inPlace = #"exec 3<>"$1" && cat "$2" >&3 && truncate -r "$2" "$1" && exec 3>&-"#
  case backup = #"mv "$1" "$1~" && cat "$2" > "$1""#
  case removal = #"rm "$1" && cat "$2" > "$1""#
}

/// Tables that are saved through a mount with `writable,strings=merge`.
extension MountTests {
  @Suite struct SavedTableTests {
    private static let name: ByteString = "fr.lproj/Main.strings"
    private static let below =
      "\"greeting\" = \"Bonjour\";\n/* a word */\n\"bye\" = \"Au revoir\";\n\"yes\" = \"Oui\";\n"

    private let fixture: Fixture
    private var stored: ByteString { fixture.substitution / Self.name }
    private var text: ByteString { fixture.folder.path / "text" }

    /// - Parameter upper: what the upper layer has of the table.
    private init(_ upper: String? = nil) throws {
      fixture = try Fixture()
      try (fixture.main / "fr.lproj").makeDirectory()
      try (fixture.main / Self.name).write(Self.below)
      if let upper {
        try (fixture.substitution / "fr.lproj").makeDirectory()
        try stored.write(upper)
      }
    }

    init() throws { try self.init(nil) }

    private func setup(_ options: ByteString...) -> MountSetup {
      var setup = fixture.setup
      setup.options = ["writable", "strings=merge"] + options
      return setup
    }

    private func keys(_ path: ByteString) throws -> [String: String] {
      let parsed = StringTable.parse(try path.read())
      #expect(parsed.error == nil)
      return Dictionary(uniqueKeysWithValues: parsed.table.entries.map { ($0.key, $0.value) })
    }

    private func expectStored(_ keys: [String: String], _ mount: Mount, shown: [String: String]) throws {
      let isStored = eventually(within: 20) { (try? self.keys(stored)) == keys }
      #expect(isStored, "\((try? stored.readText()) ?? "nothing")")
      try mount.barrier()
      #expect(try self.keys(mount.point / Self.name) == shown)
      #expect(try stored.attributeNames().allSatisfy { !$0.text.contains("bundlefs") })
    }

    @Test(
      "only what differs is stored, however the table is saved", .timeLimit(.minutes(2)),
      arguments: TableSaving.allCases)
    func savings(saving: TableSaving) throws {
      for upper in [nil, "/* mine */\n\"yes\" = \"Si\";\n"] as [String?] {
        let test = try SavedTableTests(upper)
        try withMount(test.setup()) { mount in try test.save(saving, mount, hasYes: upper != nil) }
      }
    }

    private func save(_ saving: TableSaving, _ mount: Mount, hasYes: Bool) throws {
      let table = mount.point / Self.name
      var shown = try keys(table)
      try text.write(
        String(decoding: try table.read(), as: UTF8.self).replacing("Au revoir", with: "Adieu")
          + "\"no\" = \"Non\";\n")
      try Command.shell(saving.rawValue, table, text).check()
      (shown["bye"], shown["no"]) = ("Adieu", "Non")
      var expected = ["bye": "Adieu", "no": "Non"]
      if hasYes { expected["yes"] = "Si" }
      try expectStored(expected, mount, shown: shown)
      #expect(try stored.readText().contains("/* mine */") == hasYes)
      // A key that the user did not change is that of the layer below.
      try (fixture.main / Self.name).write(Self.below.replacing("Bonjour", with: "Salut"))
      try mount.barrier()
      shown["greeting"] = "Salut"
      #expect(try keys(table) == shown)
      #expect(try table.status().size == Int64(table.read().count))
      // What is back as it was below is stored no more.
      try text.write(String(decoding: try table.read(), as: UTF8.self).replacing("Adieu", with: "Au revoir"))
      try Command.shell(saving.rawValue, table, text).check()
      (shown["bye"], expected["bye"]) = ("Au revoir", nil)
      try expectStored(expected, mount, shown: shown)
      #expect(try mount.point.names().allSatisfy { !$0.text.contains("aside") })
    }

    @Test("a key that is appended, and one that sed -i changes, are stored alone", .timeLimit(.minutes(1)))
    func appended() throws {
      try withMount(setup()) { mount in
        let table = mount.point / Self.name
        var shown = try keys(table)
        try Command.shell(#"echo '"no" = "Non";' >> "$1""#, table).check()
        shown["no"] = "Non"
        try expectStored(["no": "Non"], mount, shown: shown)
        try Command.shell(#"sed -i s/Oui/Si/ "$1""#, table).check()
        shown["yes"] = "Si"
        try expectStored(["no": "Non", "yes": "Si"], mount, shown: shown)
        try Command.shell(#"sed -i -e s/Si/Oui/ -e /Non/d "$1""#, table).check()
        shown["yes"] = "Oui"
        shown["no"] = nil
        #expect(eventually(within: 20) { !stored.exists })
        try mount.barrier()
        #expect(try keys(table) == shown)
      }
    }

    @Test("of many keys that are appended one right after the other none is lost", .timeLimit(.minutes(2)))
    func manyAppended() throws {
      for options in [["announce=on"], ["case=insensitive"]] as [[ByteString]] {
        let test = try SavedTableTests()
        var setup = test.setup()
        setup.options += options
        try withMount(setup) { mount in
          let table = mount.point / Self.name
          var shown = try test.keys(table)
          let script = #"for i in {1..200}; do echo "\"k$i\" = \"$i\";" >> "$1" || exit; done"#
          try Command.shell(script, table).check(timeout: 60)
          let added = Dictionary(uniqueKeysWithValues: (1...200).map { ("k\($0)", "\($0)") })
          shown.merge(added) { $1 }
          try test.expectStored(added, mount, shown: shown)
        }
      }
    }

    @Test("a removed key makes the table complete, until the comment is removed", .timeLimit(.minutes(1)))
    func removedKeys() throws {
      try withMount(setup()) { mount in
        let table = mount.point / Self.name
        try Command.shell(#"sed -i /Bonjour/d "$1""#, table).check()
        let isMarked = eventually(within: 20) {
          (try? stored.readText())?.hasPrefix(StringTable.completenessComment + "\n") == true
        }
        #expect(isMarked)
        try (fixture.main / Self.name).write("\"later\" = \"x\";\n")
        try mount.barrier()
        #expect(try keys(table) == ["bye": "Au revoir", "yes": "Oui"])
        #expect(try table.readText() == stored.readText())
        try (fixture.main / Self.name).write(Self.below)
        try mount.barrier()
        try Command.shell(#"sed -i -e 1d -e '$a "greeting" = "Bonjour";' "$1""#, table).check()
        #expect(eventually(within: 20) { !stored.exists })
        try mount.barrier()
        #expect(try table.readText() == Self.below)
      }
    }

    @Test("a table reads as written while it is open, also by others", .timeLimit(.minutes(1)))
    func openTable() throws {
      try withMount(setup()) { mount in
        let table = mount.point / Self.name
        try table.withOpen(O_WRONLY | O_TRUNC) { file in
          for part in ["\"bye\" = ", "\"Fin\";\n"] {
            #expect(write(file, part, part.utf8.count) == part.utf8.count)
            #expect(try table.read().count == Int(lseek(file, 0, SEEK_CUR)))
          }
          try Command.shell(#"echo '"greeting" = "Bonjour";"yes" = "Oui";' >> "$1""#, table).check()
          #expect(try table.readText().hasPrefix("\"bye\" = \"Fin\";\n\"greeting\""))
        }
        try expectStored(["bye": "Fin"], mount, shown: ["bye": "Fin", "greeting": "Bonjour", "yes": "Oui"])
      }
    }

    @Test("a text that is no table stays as it was saved, and status says so", .timeLimit(.minutes(1)))
    func malformed() throws {
      try withMount(setup()) { mount in
        let table = mount.point / Self.name
        try table.write("\"bye\" = ;\n")
        let isReported = try eventually(within: 20) {
          try mount.barrier()
          _ = try table.status()
          return try mount.command("status").outputText.contains("\(stored):1:")
        }
        #expect(isReported)
        #expect(try table.readText() == "\"bye\" = ;\n")
        try table.write(Self.below.replacing("Oui", with: "Si"))
        try expectStored(
          ["yes": "Si"], mount, shown: ["greeting": "Bonjour", "bye": "Au revoir", "yes": "Si"])
      }
    }

    @Test("the worker's death loses nothing of a table that is open", .timeLimit(.minutes(1)))
    func deaths() throws {
      try withMount(setup()) { mount in
        let table = mount.point / Self.name
        let shown = ["bye": "Fin", "greeting": "Bonjour", "yes": "Oui"]
        try table.withOpen(O_WRONLY | O_TRUNC) { file throws in
          func add(_ text: String) { #expect(write(file, text, text.utf8.count) == text.utf8.count) }
          add("\"bye\" = \"Fin\";\n")
          mount.signalWorker(SIGKILL)
          add("\"greeting\" = \"Bonjour\";\n")
          #expect(try keys(table) == ["bye": "Fin", "greeting": "Bonjour"])
          mount.signalWorker(SIGKILL)
          add("\"yes\" = \"Oui\";\n")
        }
        mount.signalWorker(SIGKILL)
        try expectStored(["bye": "Fin"], mount, shown: shown)
      }
    }

    @Test(
      "the next mount stores the difference of a table that was open when all processes died",
      .timeLimit(.minutes(1)))
    func nextMount() throws {
      let mount = try Mount(setup("survive=off"))
      defer { mount.abandon() }
      let table = mount.point / Self.name
      let file = open(table.text, O_WRONLY | O_APPEND | O_CLOEXEC)
      defer { close(file) }
      #expect(write(file, "\"no\" = \"Non\";\n", 14) == 14)
      kill(mount.process.pid, SIGKILL)
      mount.abandon()
      #expect(try keys(stored)["greeting"] == "Bonjour")
      try withMount(setup()) { mount in
        var shown = try keys(mount.point / Self.name)
        #expect(shown["no"] == "Non" && shown.count == 4)
        try expectStored(["no": "Non"], mount, shown: shown)
        try (fixture.main / Self.name).write("\"yes\" = \"Oh\";\n")
        try mount.barrier()
        shown = ["no": "Non", "yes": "Oh"]
        #expect(try keys(mount.point / Self.name) == shown)
      }
    }

    @Test("a backup by rename has all keys, and so has a hard link", .timeLimit(.minutes(1)))
    func otherNames() throws {
      let test = try SavedTableTests("\"yes\" = \"Si\";\n")
      try withMount(test.setup()) { mount in
        let table = mount.point / Self.name
        let shown = try keys(table)
        let link = mount.point / "fr.lproj/link"
        try Command("ln", table.text, link.text).check()
        #expect(try keys(link) == shown)
        try test.expectStored(["yes": "Si"], mount, shown: shown)
        try table.rename(to: mount.point / "fr.lproj/Other.strings")
        #expect(try keys(mount.point / "fr.lproj/Other.strings") == shown && !table.exists)
        #expect(
          try errorNumber(of: { try (mount.point / "fr.lproj").rename(to: mount.point / "de.lproj") })
            == .crossDeviceLink)
        try Command("mv", (mount.point / "fr.lproj").text, (mount.point / "de.lproj").text).check()
        #expect(try keys(mount.point / "de.lproj/Other.strings") == shown)
      }
    }

    @Test("attributes are stored without keys", .timeLimit(.minutes(1)))
    func attributes() throws {
      try withMount(setup()) { mount in
        let table = mount.point / Self.name
        let shown = try keys(table)
        try table.setMode(0o600)
        try expectStored([:], mount, shown: shown)
        #expect(try table.status().permissions == 0o600)
        try table.setMode(0o644)
        #expect(eventually(within: 20) { !stored.exists })
        try mount.barrier()
        #expect(try table.readText() == Self.below)
      }
    }

    @Test("the encoding of what was saved is kept", .timeLimit(.minutes(1)))
    func encodings() throws {
      try withMount(setup()) { mount in
        let table = mount.point / Self.name
        let saved = Self.below.replacing("Oui", with: "Où")
        try table.write(
          [0xFF, 0xFE] + saved.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] })
        try expectStored(
          ["yes": "Où"], mount, shown: ["greeting": "Bonjour", "bye": "Au revoir", "yes": "Où"])
        #expect(try stored.read().starts(with: [0xFF, 0xFE]))
      }
    }

    @Test("three options together are refused", .timeLimit(.minutes(1)))
    func refusal() throws {
      let error = try #require(#expect(throws: TestFailure.self) { try Mount(setup("passthrough")) })
      #expect(
        "\(error)".contains("'writable', 'strings=merge' and 'passthrough' cannot be combined"), "\(error)")
    }
  }
}
