import Glibc
import Posix
import TestSupport
import Testing

/// Folders of one layer that are one name where case does not count; `MutationTests` compares random ones with a model.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct TwinFolderTests {
    /// MAIN has `Textures/Ui/Base.dds`; the layer above `textures/UI` and `textures/ui`.
    private func withTwins(
      _ options: ByteString..., body: (_ mod: ByteString, Mount) throws -> Void
    ) throws {
      let fixture = try Fixture(isFilled: false)
      try (fixture.main / "Textures/Ui").makeDirectories()
      try (fixture.main / "Textures/Ui/Base.dds").write("base")
      let mod = fixture.substitution
      for folder in ["UI", "ui"] as [ByteString] {
        try (mod / "textures" / folder / "sub").makeDirectories()
        try (mod / "textures" / folder / "sub" / folder).write(folder.text)
        try (mod / "textures" / folder / "Both").write(folder.text)
      }
      try (mod / "textures/UI/Upper.dds").write("upper")
      try (mod / "textures/ui/Lower.dds").write("lower")
      var setup = fixture.setup("case=insensitive", "announce=off")
      setup.options += options
      try withMount(setup) { try body(mod, $0) }
    }

    private static let spellings: [ByteString] = ["Ui", "UI", "ui", "uI"]

    @Test("they are one folder, recursively", .timeLimit(.minutes(1)))
    func merged() throws {
      try withTwins { _, mount in
        for folder in Self.spellings.map({ mount.point / "TEXTURES" / $0 }) {
          let names = try folder.names()
          #expect(names == ["Base.dds", "Both", "Lower.dds", "Upper.dds", "sub"])
          #expect(try (folder / "UPPER.dds").readText() == "upper", "\(folder)")
          #expect(try (folder / "LOWER.dds").readText() == "lower", "\(folder)")
          #expect(try (folder / "Sub").names() == ["UI"], "\(folder)")
          #expect(try (folder / "Sub/Ui").readText() == "UI", "\(folder)")
          #expect(try (folder / "Sub/ui").readText() == "ui", "\(folder)")
        }
        #expect(try mount.repeatedRequests { _ = try (mount.point / "Textures/Ui/Lower.dds").read() } == [])
      }
    }

    @Test(
      "of files of one name the one in the folder of the spelling that is asked for", .timeLimit(.minutes(1)))
    func conflicts() throws {
      try withTwins { mod, mount in
        let seen = try Self.spellings.map { try (mount.point / "Textures" / $0 / "both").readText() }
        #expect(seen == ["UI", "UI", "ui", "UI"])
        // A spelling of the file counts before that of its folder.
        try (mod / "textures/ui/BOTH").write("exact")
        try mount.barrier()
        for folder in Self.spellings {
          #expect(try (mount.point / "Textures" / folder / "BOTH").readText() == "exact", "\(folder)")
        }
        // Of a file and folders, the entry of the spelling, or else the first by bytes.
        try (mod / "textures/UI/KIND").write("file")
        try (mod / "textures/ui/Kind").makeDirectory()
        try (mod / "textures/ui/Kind/inner").write("inner")
        try mount.barrier()
        let folder = mount.point / "textures/ui"
        #expect(try (folder / "KIND").readText() == "file")
        #expect(try (folder / "kind").readText() == "file")
        #expect(try (folder / "Kind").names() == ["inner"])
      }
    }

    @Test("a second spelling that comes and goes", .timeLimit(.minutes(1)), arguments: [false, true])
    func live(isFirst: Bool) throws {
      // The new folder comes before the other one by bytes, or after it.
      let (old, new): (ByteString, ByteString) = isFirst ? ("meshes", "Meshes") : ("Meshes", "meshes")
      try withTwins { mod, mount in
        try (mod / old / "Deep").makeDirectories()
        try (mod / old / "Deep/a").write("a")
        let folders = ["meshes", "Meshes", "MESHES"].map { mount.point / $0 / "deep" }
        func names() throws -> [[ByteString]] { try folders.map { try $0.names() } }
        func found(_ name: ByteString) -> [Bool] { folders.map { ($0 / name).exists } }
        let open = Glibc.open((mount.point / "Meshes/Deep/a").text, O_RDONLY)
        defer { close(open) }
        for _ in 0..<5 {
          #expect(try names() == [["a"], ["a"], ["a"]])
          #expect(found("b") == [false, false, false])
          try (mod / new / "DEEP").makeDirectories()
          try (mod / new / "DEEP/b").write("b")
          try mount.barrier()
          #expect(try names() == [["a", "b"], ["a", "b"], ["a", "b"]])
          #expect(found("b") == [true, true, true])
          #expect(found("a") == [true, true, true])
          // Changes in either are seen.
          try (mod / new / "DEEP/b").overwrite(Array("B".utf8), at: 0)
          try (mod / old / "Deep/a").overwrite(Array("A".utf8), at: 0)
          try mount.barrier()
          for folder in folders {
            #expect(try (folder / "B").readText() == "B")
            #expect(try (folder / "A").readText() == "A")
          }
          #expect(try ByteString.readAll(open) == Array("A".utf8))
          lseek(open, 0, SEEK_SET)
          (mod / new).removeTree()
          try (mod / old / "Deep/a").overwrite(Array("a".utf8), at: 0)
          try mount.barrier()
        }
        #expect(try names() == [["a"], ["a"], ["a"]])
        // The one that was first shown goes.
        try (mod / new).makeDirectories()
        try (mod / new / "c").write("c")
        (mod / old).removeTree()
        try mount.barrier()
        for folder in folders.map(\.parent) { #expect(try folder.names() == ["c"]) }
        #expect(found("a") == [false, false, false])
      }
    }

    @Test("whiteouts and opaque folders hide the layers below, not each other", .timeLimit(.minutes(1)))
    func whiteouts() throws {
      try withTwins { mod, mount in
        let folder = mount.point / "textures/ui"
        #expect((folder / "base.dds").exists)
        try (mod / "textures/UI/.wh.BASE.dds").write("")
        try (mod / "textures/UI/.wh.lower.dds").write("")
        try mount.barrier()
        #expect(try folder.names() == ["Both", "Lower.dds", "Upper.dds", "sub"])
        #expect(!(folder / "base.dds").exists)
        try (mod / "textures/UI/.wh.BASE.dds").remove()
        try mount.barrier()
        #expect((folder / "base.dds").exists)
        try (mod / "textures/ui/.wh..wh..opq").write("")
        try mount.barrier()
        #expect(!(folder / "base.dds").exists)
        #expect(try folder.names() == ["Both", "Lower.dds", "Upper.dds", "sub"])
      }
    }

    @Test("the worker dies", .timeLimit(.minutes(2)))
    func deaths() throws {
      try withTwins { mod, mount in
        for round in 0..<4 {
          let name = ByteString("new\(round)")
          #expect(Self.spellings.allSatisfy { !(mount.point / "textures" / $0 / name).exists })
          #expect(try (mount.point / "textures/uI/lower.dds").readText() == "lower")
          let former = mount.worker
          kill(former, SIGKILL)
          try #require(eventually(within: 20) { ![former, mount.process.pid].contains(mount.worker) })
          if round == 2 { try (mod / "textures/UI").rename(to: mod / "textures/uI") }
          try (mod / "textures/ui" / ByteString("NEW\(round)")).write("there")
          try mount.barrier()
          #expect(Self.spellings.allSatisfy { (mount.point / "textures" / $0 / name).exists }, "\(round)")
          #expect(Self.spellings.allSatisfy { (mount.point / "textures" / $0 / "upper.dds").exists })
        }
      }
    }

    @Test("an archive has them, and is replaced", .timeLimit(.minutes(1)))
    func archive() throws {
      let fixture = try Fixture(isFilled: false)
      try (fixture.main / "Data").makeDirectory()
      let archive = fixture.folder / "mod.zip"
      func pack(_ entries: [ByteString]) throws {
        let bytes = ZipBuilder(entries.map { .init($0, $0.text) }).bytes
        try (fixture.folder / "new.zip").write(bytes)
        try (fixture.folder / "new.zip").rename(to: archive)
      }
      try pack(["data/UI/a", "Data/ui/b", "DATA/Ui/Sub/c"])
      var setup = fixture.setup("case=insensitive", "announce=off")
      setup.substitutions = [archive]
      try withMount(setup) { mount in
        let folder = mount.point / "Data/uI"
        #expect(try folder.names() == ["Sub", "a", "b"])
        #expect(try (folder / "A").readText() == "data/UI/a")
        #expect(try (folder / "sub/C").readText() == "DATA/Ui/Sub/c")
        #expect(!(folder / "d").exists)
        try pack(["data/UI/a", "DATA/ui/D"])
        try mount.barrier()
        #expect(try folder.names() == ["D", "a"])
        #expect((folder / "d").exists && !(folder / "b").exists)
      }
    }

    @Test("diff, status and attributes", .timeLimit(.minutes(1)))
    func reports() throws {
      try withTwins { mod, mount in
        let folder = mount.point / "Textures/Ui"
        for (name, real) in [
          ("upper.dds", "UI/Upper.dds"), ("lower.dds", "ui/Lower.dds"), ("sub/ui", "ui/sub/ui"),
        ]
          as [(ByteString, ByteString)]
        {
          let path = try (folder / name).attribute("user.bundlefs.path")
          #expect(ByteString(path) == mod / "textures" / real, "\(name)")
        }
        _ = try folder.names()
        let differences = try mount.command("diff").outputText
        #expect(differences.contains("has twice  Textures/ui/"), "\(differences)")
        #expect(differences.contains("has twice  Textures/Ui/Both"), "\(differences)")
        #expect(differences.contains("adds       Textures/Ui/Lower.dds"), "\(differences)")
        let status = try mount.command("status").outputText
        #expect(status.contains("names in several spellings"), "\(status)")
      }
    }

    @Test("override and revert", .timeLimit(.minutes(1)))
    func override() throws {
      try withTwins { mod, mount in
        let outcome = try mount.command("override", "textures/ui/base.dds")
        #expect(outcome.status == 0, "\(outcome.errorText)")
        #expect(try (mod / "textures/UI/Base.dds").readText() == "base")
        #expect(try mount.command("override", "textures/ui/lower.dds").outputText.contains("ui/Lower.dds"))
        #expect(!(mod / "textures/UI/Lower.dds").exists)
        #expect(try mount.command("revert", "--yes", "Textures/Ui/Both", "Textures/Ui/lower.DDS").status == 0)
        #expect(try (mod / "textures/UI").names() == ["Base.dds", "Upper.dds", "sub"])
        #expect(try (mod / "textures/ui").names() == ["sub"])
        #expect(try mount.command("revert", "--yes", "Textures/uI").status == 0)
        #expect(try (mount.point / "Textures/UI").names() == ["Base.dds"])
      }
    }

    @Test("a layer with them is added and removed", .timeLimit(.minutes(1)))
    func layers() throws {
      try withTwins { mod, mount in
        let other = mod.parent / "other"
        for (folder, name) in [("textures/uI", "x"), ("TEXTURES/ui", "y")] as [(ByteString, ByteString)] {
          try (other / folder).makeDirectories()
          try (other / folder / name).write(name.text)
        }
        func seen() -> [Bool] {
          Self.spellings.flatMap { folder in
            ["x", "Y"].map { (mount.point / "textures" / folder / $0).exists }
          }
        }
        #expect(!seen().contains(true))
        #expect(try mount.command("layers", "add", other).status == 0)
        #expect(!seen().contains(false))
        #expect(try (mount.point / "Textures/Ui").names().count == 7)
        #expect(try mount.command("layers", "remove", other).status == 0)
        #expect(!seen().contains(true))
      }
    }

    @Test("names that the view hides", .timeLimit(.minutes(1)))
    func hidden() throws {
      try withTwins("hide=LOWER.*:textures/ui/sub") { _, mount in
        for folder in Self.spellings.map({ mount.point / "Textures" / $0 }) {
          let names = try folder.names()
          #expect(names == ["Base.dds", "Both", "Upper.dds"])
          #expect(!(folder / "Lower.dds").exists && !(folder / "Sub").exists)
        }
      }
    }
  }
}
