import Glibc
import Posix
import TestSupport
import Testing

/// Changes through a mount where case does not count; `WriteModelTests` compares random ones with a plain file system.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct WriteSpellingTests {
    private static let formats: [ByteString] = ["whiteouts=devices", "whiteouts=markers"]

    /// MAIN has `Data/X.ini` and `README.TXT`, the layer above `readme.txt`; the topmost one takes the changes.
    private func withLayers(
      _ options: ByteString, _ body: (Mount, _ upper: ByteString) throws -> Void,
      again: (Mount) throws -> Void = { _ in }
    ) throws {
      let fixture = try Fixture(isFilled: false)
      let middle = try fixture.folder.folder("middle")
      try (fixture.main / "Data").makeDirectory()
      try (fixture.main / "Data/X.ini").write("old")
      try (fixture.main / "README.TXT").write("main")
      try (middle / "readme.txt").write("middle")
      var setup = MountSetup(
        main: fixture.main, point: fixture.point, substitutions: [fixture.substitution, middle])
      setup.options = ["writable", "case=insensitive", options]
      try withMount(setup) { try body($0, fixture.substitution) }
      try withMount(setup) { try again($0) }
    }

    @Test("copies have the spelling that is shown", .timeLimit(.minutes(1)), arguments: formats)
    func copies(format: ByteString) throws {
      try withLayers(format) { mount, upper in
        try (mount.point / "DATA/x.INI").write("new")
        #expect(try (upper / "Data/X.ini").readText() == "new")
        #expect(try (upper / "Data").names() == ["X.ini"])
        #expect(try (mount.point / "data/X.INI").readText() == "new")
        #expect(try (mount.point / "data").names() == ["X.ini"])
        try (mount.point / "dAta/New.txt").write("made")
        #expect(try (upper / "Data/New.txt").readText() == "made")
        #expect(try mount.names() == ["Data", "README.TXT"])
      }
    }

    @Test("a name that exists in another spelling", .timeLimit(.minutes(1)), arguments: formats)
    func existing(format: ByteString) throws {
      try withLayers(format) { mount, _ in
        let other = mount.point / "data/x.INI"
        #expect(try errorNumber { try (mount.point / "DATA").makeDirectory() } == .fileExists)
        #expect(try errorNumber { try other.makeDirectory() } == .fileExists)
        #expect(try errorNumber { try other.makeLink(to: "nowhere") } == .fileExists)
        #expect(try errorNumber { try other.makeHardLink(of: mount.point / "readme.txt") } == .fileExists)
        #expect(try errorNumber { try other.withFile(O_CREAT | O_EXCL | O_WRONLY) { _ in } } == .fileExists)
        try other.withFile(O_CREAT | O_WRONLY) { _ in }
        #expect(try other.readText() == "old")
      }
    }

    @Test("a removal hides all spellings, of all layers", .timeLimit(.minutes(1)), arguments: formats)
    func removal(format: ByteString) throws {
      let spellings: [ByteString] = ["README.TXT", "readme.txt", "ReadMe.txt"]
      try withLayers(format) { mount, _ in
        #expect(try mount.names() == ["Data", "README.TXT"])
        #expect(spellings.allSatisfy { (mount.point / $0).exists })
        try (mount.point / "ReadMe.txt").remove()
        #expect(!spellings.contains { (mount.point / $0).exists })
        #expect(try mount.names() == ["Data"])
        try (mount.point / "data/X.INI").remove()
        try (mount.point / "DATA").removeDirectory()
        #expect(try mount.names() == [])
        // What is made then is shown as it was made, and what was there before stays hidden.
        try (mount.point / "readMe.Txt").write("again")
        try (mount.point / "data").makeDirectory()
        #expect(try mount.names() == ["data", "readMe.Txt"])
        let texts = try spellings.map { try (mount.point / $0).readText() }
        #expect(texts == ["again", "again", "again"])
      }
    }

    @Test("what was made in another spelling, in a new mount", .timeLimit(.minutes(1)), arguments: formats)
    func madeAgain(format: ByteString) throws {
      try withLayers(format) { mount, upper in
        for _ in 0..<2 {
          try (mount.point / "Readme.txt").remove()
          try (mount.point / "readme.TXT").write("again")
        }
        (mount.point / "data").removeTree()
        // This whiteout has the spelling of the new directory.
        if format == "whiteouts=devices" {
          try (upper / "Data").rename(to: upper / "data")
        } else {
          try (upper / ".wh.Data").rename(to: upper / ".wh.data")
        }
        try mount.barrier()
        try (mount.point / "data").makeDirectory()
        #expect(try mount.names() == ["data", "readme.TXT"])
      } again: { (mount: Mount) throws in
        #expect(try mount.names() == ["data", "readme.TXT"])
        #expect(try (mount.point / "DATA").names() == [])
      }
    }

    @Test("a rename to another spelling", .timeLimit(.minutes(1)), arguments: formats)
    func respelling(format: ByteString) throws {
      try withLayers(format) { mount, _ in
        let point = mount.point
        try (point / "README.TXT").rename(to: point / "ReadMe.TXT")
        #expect(try mount.names() == ["Data", "ReadMe.TXT"])
        try (point / "mine").write("mine")
        try Command("mv", (point / "mine").text, (point / "MINE").text).check()
        #expect(try mount.names() == ["Data", "MINE", "ReadMe.TXT"])
        try (point / "mine").rename(to: point / "Mine", flags: 1)
        try (point / "folder").makeDirectory()
        try (point / "folder/file").write("inside")
        try Command("mv", (point / "folder").text, (point / "Folder").text).check()
        #expect(try mount.names() == ["Data", "Folder", "Mine", "ReadMe.TXT"])
        // Layers below take part in it.
        #expect(try errorNumber { try (point / "Data").rename(to: point / "DATA") } == .crossDeviceLink)
      } again: { (mount: Mount) throws in
        #expect(try mount.names() == ["Data", "Folder", "Mine", "ReadMe.TXT"])
        #expect(try (mount.point / "FOLDER/file").readText() == "inside")
      }
    }

    @Test("the memory of another user's program is not read", .timeLimit(.minutes(1)))
    func otherUser() throws {
      try withLayers("allow_other") { mount, _ in
        let folder = mount.point / "shared"
        try folder.makeDirectory()
        try (folder / "name").write("shared")
        try Command("chown", "-R", "1000:1000", folder.text).check()
        let rename = Command("mv", (folder / "name").text, (folder / "Name").text)
        // The kernel tells it that the new name exists.
        #expect(try rename.asUser(1000).run().status == 1)
        #expect(try folder.names() == ["name"])
        try rename.check()
        #expect(try folder.names() == ["Name"])
      }
    }

    @Test("saving as Windows programs do", .timeLimit(.minutes(1)), arguments: formats)
    func saving(format: ByteString) throws {
      try withLayers(format) { mount, upper in
        let folder = mount.point / "data"
        for round in 0..<30 {
          try (folder / "Save.TMP").write("round \(round)")
          #expect(try folder.names() == ["Save.TMP", "X.ini"])
          try (folder / "save.tmp").rename(to: mount.point / "DATA" / (round % 2 == 0 ? "x.ini" : "X.INI"))
          #expect(try folder.names() == ["X.ini"])
          #expect(!(folder / "SAVE.TMP").exists && !(folder / "Save.TMP").exists)
          #expect(try (folder / "X.Ini").readText() == "round \(round)")
          try (folder / "Old.txt").write("")
          #expect((folder / "OLD.TXT").exists && (folder / "old.txt").exists)
          try (folder / "OLD.txt").remove()
          #expect(!(folder / "old.txt").exists && !(folder / "Old.txt").exists)
          #expect(try folder.names() == ["X.ini"])
        }
        #expect(try (upper / "Data").names() == ["X.ini"])
      }
    }

    @Test(
      "a change of the second of two files with one name below", .timeLimit(.minutes(1)), arguments: formats)
    func collisionsBelow(format: ByteString) throws {
      try withLayers(format) { mount, upper in
        try (upper.parent / "middle/Two").write("first")
        try (upper.parent / "middle/two").write("second")
        try mount.barrier()
        #expect(try (mount.point / "two").readText() == "second")
        try (mount.point / "two").overwrite(Array("S".utf8), at: 0)
        // It becomes the file of that name, in the spelling that is shown.
        #expect(try (upper / "Two").readText() == "Second")
        for name in ["two", "Two", "TWO"] as [ByteString] {
          #expect(try (mount.point / name).readText() == "Second")
        }
      }
    }

    @Test("two entries of the upper layer with one name", .timeLimit(.minutes(1)))
    func collisions() throws {
      try withLayers("whiteouts=devices") { mount, upper in
        try (upper / "Two").write("first")
        try (upper / "two").write("second")
        try mount.barrier()
        try (mount.point / "TWO").write("changed")
        #expect(try (upper / "Two").readText() == "changed")
        try (mount.point / "two").remove()
        #expect(try (mount.point / "two").readText() == "changed")
        #expect(!(upper / "two").exists)
        // Directories are one.
        for (folder, file) in [("Dir", "a"), ("dir", "b")] as [(ByteString, ByteString)] {
          try (upper / folder).makeDirectory()
          try (upper / folder / file).write(folder.text)
        }
        try mount.barrier()
        for folder in ["Dir", "dir", "DIR"].map({ mount.point / $0 }) {
          #expect(try folder.names() == ["a", "b"])
          #expect(try (folder / "A").readText() == "Dir")
          #expect(try (folder / "B").readText() == "dir")
        }
        try (mount.point / "dir/b").remove()
        #expect((upper / "Dir/a").exists && !(upper / "dir/b").exists)
      }
    }

    @Test("an exchange with another spelling", .timeLimit(.minutes(1)))
    func exchange() throws {
      try withLayers("whiteouts=devices") { mount, upper in
        try (mount.point / "Other").write("other")
        try (mount.point / "OTHER").rename(to: mount.point / "readme.TXT", flags: 2)
        #expect(try mount.names() == ["Data", "Other", "README.TXT"])
        #expect(try (mount.point / "readme.txt").readText() == "other")
        #expect(try (mount.point / "other").readText() == "middle")
        try (mount.point / "other").rename(to: mount.point / "OTHER", flags: 2)
        #expect(try mount.names() == ["Data", "Other", "README.TXT"])
        #expect(
          try errorNumber { try (mount.point / "other").rename(to: mount.point / "readme.txt", flags: 1) }
            == .fileExists)
      }
    }
  }
}
