import Glibc
import Posix
import TestSupport
import Testing

/// `-o writable,strings=merge`: what is left of a table that a program saves.
extension MountTests {
  @Suite struct TableSavingTests {
    private static let changed = TableSaving.main.replacing("\"2\"", with: "\"zwei\"")
    private static let path = TableSaving.name
    private static let difference = "\"b\" = \"zwei\";\n"

    /// The ways in which programs save.
    enum Pattern: String, CaseIterable {
      case truncate, pieces, rename, otherName, backup, link, unlink, exchange, place, mapping

      func save(_ text: String, to table: ByteString) throws {
        let (other, bytes) = (table.parent / "4913", [UInt8](text.utf8))
        switch self {
        case .truncate: try table.write(text)
        case .pieces:
          try table.withFile(O_WRONLY | O_TRUNC) { file in
            for piece in stride(from: 0, to: bytes.count, by: 7) {
              try ByteString.put(
                String(decoding: bytes[piece..<min(piece + 7, bytes.count)], as: UTF8.self), in: file)
              if piece % 2 == 0 { #expect(fsync(file) == 0) }
            }
          }
        case .rename:
          try (table.parent / "New.strings").write(text)
          try (table.parent / "New.strings").rename(to: table)
        case .otherName:
          try other.write(text)
          try other.rename(to: table)
        case .backup:
          try table.rename(to: other)
          try table.write(text)
          try other.remove()
        case .link:
          try other.write(text)
          try table.remove()
          try table.makeHardLink(of: other)
          try other.remove()
        case .unlink:
          try table.remove()
          try table.write(text)
        case .exchange:
          try other.write(text)
          try other.exchange(with: table)
          try other.remove()
        case .place:
          try table.withFile(O_RDWR) { file in
            _ = try ByteString.text(of: file)
            try ByteString.put(text, in: file, at: 0)
            #expect(ftruncate(file, off_t(bytes.count)) == 0)
          }
        case .mapping:
          try table.setSize(bytes.count)
          try table.withFile(O_RDWR) { file in
            let memory = try #require(
              mmap(nil, bytes.count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), "mmap")
            memory.copyMemory(from: bytes, byteCount: bytes.count)
            munmap(memory, bytes.count)
          }
        }
      }
    }

    @Test("only what was changed is stored", .timeLimit(.minutes(1)), arguments: Pattern.allCases)
    func patterns(pattern: Pattern) throws {
      try TableSaving.run { tables in
        try pattern.save(Self.changed, to: tables.table)
        try tables.expect(upper: Self.difference, shown: Self.changed)
        let further = Self.changed.replacing("\"1\"", with: "\"eins\"") + "// new\n\"d\" = \"vier\";\n"
        try pattern.save(further, to: tables.table)
        let difference =
          "/* title */\n\"a\" = \"eins\";\n\n" + Self.difference + "\n// new\n\"d\" = \"vier\";\n"
        try tables.expect(upper: difference, shown: further)
        // What the user did not change follows MAIN.
        try tables.below.write(TableSaving.main.replacing("\"3\"", with: "\"drei\""))
        try tables.mount.barrier()
        #expect(try tables.table.readText().contains("\"drei\""))
        #expect(try tables.fixture.substitution.names().contains("fr.lproj"))
        #expect(try (tables.fixture.substitution / "fr.lproj").names() == ["Main.strings"])
      }
    }

    @Test("a key is appended", .timeLimit(.minutes(1)))
    func appending() throws {
      try TableSaving.run(upper: Self.difference) { tables in
        for key in ["x", "y"] {
          try Command("sh", "-c", "echo '\"\(key)\" = \"new\";' >> \"$0\"", tables.table.text).check()
        }
        let difference = Self.difference + "\n\"x\" = \"new\";\n\n\"y\" = \"new\";\n"
        try tables.settle()
        #expect(try tables.upper.readText() == difference)
      }
    }

    @Test(
      "a table without a key is stored whole, and says so", .timeLimit(.minutes(1)),
      arguments: Pattern.allCases)
    func removedKey(pattern: Pattern) throws {
      try TableSaving.run { tables in
        let saved = "\"a\" = \"1\";\n\"b\" = \"2\";\n"
        try pattern.save(saved, to: tables.table)
        let whole = TableSaving.mark + saved
        try tables.expect(upper: whole, shown: whole)
        try tables.below.write(TableSaving.main.replacing("1", with: "9"))
        try tables.mount.barrier()
        #expect(try tables.table.readText() == whole)
        try pattern.save(saved.replacing("1", with: "one"), to: tables.table)
        let again = TableSaving.mark + saved.replacing("1", with: "one")
        try tables.expect(upper: again, shown: again)
        // With all keys again it is merged again.
        try pattern.save("\"a\" = \"9\";\n\"b\" = \"2\";\n\"c\" = \"x\";\n", to: tables.table)
        try tables.settle()
        #expect(try tables.upper.readText() == "\"c\" = \"x\";\n")
      }
    }

    @Test("what is no table is stored as it is", .timeLimit(.minutes(1)), arguments: Pattern.allCases)
    func malformed(pattern: Pattern) throws {
      try TableSaving.run(upper: Self.difference) { tables in
        let text = "\"a\" = \"1;\n\"b\" = \"x\"\n\"c\" = \"3\";\n"
        try pattern.save(text, to: tables.table)
        try tables.expect(upper: text, shown: text)
        let status = try tables.mount.command("status").outputText
        #expect(status.contains("Main.strings"))
        try pattern.save(Self.changed, to: tables.table)
        try tables.expect(upper: Self.difference, shown: Self.changed)
      }
    }

    @Test("a table that was removed is not merged when it is made again", .timeLimit(.minutes(1)))
    func removal() throws {
      try TableSaving.run(upper: Self.difference) { tables in
        try tables.table.remove()
        try tables.settle()
        #expect(tables.upper.isWhiteout && !tables.table.exists)
        try tables.table.write("\"n\" = \"0\";\n")
        let whole = TableSaving.mark + "\"n\" = \"0\";\n"
        try tables.expect(upper: whole, shown: whole)
      }
    }

    @Test("a table that is open for writing is an ordinary file", .timeLimit(.minutes(1)))
    func openTable() throws {
      try TableSaving.run { tables in
        try tables.table.withFile(O_WRONLY | O_TRUNC) { file in
          try ByteString.put("\"a\" = ", in: file)
          #expect(try tables.table.readText() == "\"a\" = ")
          try tables.mount.killWorker()
          // Longer than the thread waits at first.
          Clock.sleep(0.7)
          #expect(try tables.upper.readText() == "\"a\" = ")
          try ByteString.put("\"eins\";\n\"b\" = \"2\";\n\"c\" = \"3\";\n", in: file)
          #expect(TableSaving.pending(in: tables.fixture.substitution).count == 1)
        }
        try tables.settle()
        #expect(try tables.upper.readText() == "\"a\" = \"eins\";\n")
      }
    }

    @Test(
      "what a program leaves alone follows a layer below that is changed meanwhile", .timeLimit(.minutes(1)),
      arguments: [true, false])
    func changeBelow(isRead: Bool) throws {
      try TableSaving.run(upper: "\"c\" = \"drei\";\n") { tables in
        try tables.table.withFile(O_RDWR) { file in
          if isRead { _ = try ByteString.text(of: file) } else { try ByteString.put("/", in: file, at: 0) }
          let text = try tables.table.readText()
          try tables.below.write("\"a\" = \"new\";\n\"b\" = \"2\";\n\"n\" = \"new\";\n")
          try tables.mount.barrier()
          let saved = text.replacing("\"2\"", with: "\"zwei\"")
          #expect(ftruncate(file, 0) == 0)
          try ByteString.put(saved, in: file, at: 0)
        }
        try tables.settle()
        let upper = try tables.upper.readText()
        #expect(
          upper.contains("\"b\" = \"zwei\";") && upper.contains("\"c\" = \"drei\";")
            && !upper.contains("\"a\""))
        let shown = try tables.table.readText()
        #expect(shown.contains("\"a\" = \"new\";") && shown.contains("\"n\" = \"new\";"))
      }
    }

    @Test(
      "a program finds what it has saved, with its times", .timeLimit(.minutes(1)),
      arguments: [Pattern.truncate, .otherName, .backup])
    func attributes(pattern: Pattern) throws {
      try TableSaving.run(upper: Self.difference) { tables in
        try tables.table.setMode(0o640)
        try tables.settle()
        try pattern.save(Self.changed + "\"d\" = \"4\";\n", to: tables.table)
        if pattern != .truncate { try tables.table.setMode(0o640) }
        let before = try tables.table.status()
        try tables.settle()
        let after = try tables.table.status()
        #expect(before.size == after.size && before.modified == after.modified)
        #expect(try after.permissions == 0o640 && tables.upper.status().permissions == 0o640)
        #expect(try tables.table.readText() == Self.changed + "\"d\" = \"4\";\n")
      }
    }

    @Test("the upper layer's encoding stays", .timeLimit(.minutes(1)))
    func encoding() throws {
      func wide(_ text: String) -> [UInt8] {
        ("\u{FEFF}" + text).utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
      }
      try TableSaving.run { tables in
        try tables.upper.write(wide("\"b\" = \"zw\u{F6}\";\n"))
        try tables.mount.barrier()
        let shown = try tables.table.readText()
        try tables.table.write(shown + "\"d\" = \"\u{FC}\";\n")
        try tables.settle()
        #expect(try tables.upper.read() == wide("\"b\" = \"zw\u{F6}\";\n\n\"d\" = \"\u{FC}\";\n"))
        try tables.table.write(wide("\"a\" = \"\u{E4}\";\n\"b\" = \"2\";\n"))
        try tables.settle()
        #expect(try tables.upper.read() == wide(TableSaving.mark + "\"a\" = \"\u{E4}\";\n\"b\" = \"2\";\n"))
      }
    }

    @Test("the next mount finishes what a daemon that died has left", .timeLimit(.minutes(1)))
    func crash() throws {
      let fixture = try Fixture(isFilled: false)
      for layer in [fixture.main, fixture.substitution] { try (layer / "fr.lproj").makeDirectories() }
      try (fixture.main / TableSaving.name).write(TableSaving.main)
      var setup = fixture.setup
      setup.options = ["writable", "strings=merge"]
      do {
        let mount = try Mount(setup)
        try (mount.point / TableSaving.name).withFile(O_WRONLY | O_TRUNC) { file in
          try ByteString.put(Self.changed, in: file)
          let worker = mount.worker
          kill(mount.process.pid, SIGKILL)
          kill(worker, SIGKILL)
        }
        mount.abandon()
      }
      #expect(try (fixture.substitution / TableSaving.name).readText() == Self.changed)
      try TableSaving.run(fixture: fixture) { tables in
        try tables.expect(upper: Self.difference, shown: Self.changed)
      }
      #expect(try fixture.substitution.names() == ["fr.lproj"])
    }

    @Test("a table that is saved right before the end of the mount is reduced", .timeLimit(.minutes(1)))
    func end() throws {
      let fixture = try Fixture(isFilled: false)
      try TableSaving.run(fixture: fixture) { tables in try tables.table.write(Self.changed) }
      #expect(try (fixture.substitution / TableSaving.name).readText() == Self.difference)
      #expect(try fixture.substitution.names() == ["fr.lproj"])
    }

    @Test(
      "override makes an empty table, and apply merges what was saved into MAIN's", .timeLimit(.minutes(1)))
    func commands() throws {
      try TableSaving.run { tables in
        #expect(try tables.mount.command("override", Self.path).status == 0)
        try tables.mount.barrier()
        #expect(try tables.upper.readText() == "" && tables.table.readText().contains("\"c\" = \"3\";"))
        try tables.table.write(Self.changed)
        try tables.settle()
        #expect(try tables.mount.command("diff").outputText.contains("Main.strings"))
        #expect(try tables.mount.command("apply", "--yes").status == 0)
        #expect(!tables.upper.exists)
        #expect(
          try tables.below.readText().contains("\"b\" = \"zwei\";")
            && tables.below.readText().contains("\"c\" = \"3\";"))
        try tables.table.write(TableSaving.main)
        try tables.settle()
        #expect(try tables.mount.command("revert", Self.path, "--yes").status == 0)
        try tables.mount.barrier()
        #expect(try tables.table.readText().contains("\"b\" = \"zwei\";"))
      }
    }

    @Test(
      "where case does not count, a table is saved by any spelling", .timeLimit(.minutes(1)),
      arguments: Pattern.allCases)
    func spellings(pattern: Pattern) throws {
      try TableSaving.run("case=insensitive", upper: Self.difference) { tables in
        try pattern.save(
          Self.changed.replacing("\"1\"", with: "\"eins\""), to: tables.mount.point / "FR.lproj/MAIN.STRINGS")
        try tables.settle()
        let folder = tables.fixture.substitution / "fr.lproj"
        // A name that was removed first comes again as it was given.
        let isNew = [Pattern.backup, .link, .unlink].contains(pattern)
        let upper = folder / (isNew ? "MAIN.STRINGS" : "Main.strings")
        #expect(try upper.readText() == "/* title */\n\"a\" = \"eins\";\n\n" + Self.difference)
      }
    }
  }
}
