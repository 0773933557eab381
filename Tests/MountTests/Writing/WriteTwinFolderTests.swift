import Glibc
import Posix
import TestSupport
import Testing

/// Folders of the upper layer that are one name where case does not count.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct WriteTwinFolderTests {
    private static let formats: [ByteString] = ["whiteouts=devices", "whiteouts=markers"]

    /// MAIN has `Textures/ui/Base.dds` and `Other.dds`; the upper layer `textures/UI` and `textures/ui`.
    private func withTwins(
      _ format: ByteString, body: (_ upper: ByteString, Mount) throws -> Void
    ) throws {
      let fixture = try Fixture(isFilled: false)
      try (fixture.main / "Textures/ui").makeDirectories()
      for name in ["Base.dds", "Other.dds"] as [ByteString] {
        try (fixture.main / "Textures/ui" / name).write(name.text)
      }
      let upper = fixture.substitution
      for (folder, name) in [("UI", "upper.dds"), ("ui", "lower.dds")] as [(ByteString, ByteString)] {
        try (upper / "textures" / folder).makeDirectories()
        try (upper / "textures" / folder / "Both").write(folder.text)
        try (upper / "textures" / folder / name).write(name.text)
      }
      var setup = fixture.setup("case=insensitive", "writable", "announce=off")
      setup.options.append(format)
      try withMount(setup) { try body(upper, $0) }
      try withMount(setup) { mount in
        let names = try (mount.point / "Textures").names().filter { ["UI", "Ui", "ui"].contains($0) }
        #expect(names.count < 2, "\(names)")
      }
    }

    @Test("changes reach the folder that has the entry, and new ones the shown one", arguments: formats)
    func changes(format: ByteString) throws {
      try withTwins(format) { upper, mount in
        let folder = mount.point / "TEXTURES/Ui"
        #expect(try folder.names() == ["Base.dds", "Both", "Other.dds", "lower.dds", "upper.dds"])
        try (folder / "UPPER.dds").write("changed")
        try (folder / "Lower.DDS").write("changed, too")
        #expect(try (upper / "textures/UI/upper.dds").readText() == "changed")
        #expect(try (upper / "textures/ui/lower.dds").readText() == "changed, too")
        try (folder / "base.DDS").overwrite(Array("copy".utf8), at: 0)
        try (folder / "New").write("new")
        try (folder / "Folder").makeDirectory()
        #expect(try (upper / "textures/ui").names() == ["Base.dds", "Both", "Folder", "New", "lower.dds"])
        #expect(try (upper / "textures/UI").names() == ["Both", "upper.dds"])
        try (folder / "Upper.dds").rename(to: mount.point / "textures/moved")
        #expect(try (upper / "textures/UI").names() == ["Both"])
        #expect(try (mount.point / "textures/moved").readText() == "changed")
        try (folder / "Lower.dds").remove()
        try (folder / "other.dds").remove()
        #expect(try folder.names() == ["Base.dds", "Both", "Folder", "New"])
        #expect(!(folder / "lower.dds").exists && !(folder / "other.dds").exists)
        // The one in the folder that is shown comes first; the other one is not lost.
        #expect(try (folder / "both").readText() == "ui")
        try (folder / "BOTH").remove()
        #expect(try (folder / "both").readText() == "UI")
      }
    }

    @Test("a folder of several is not renamed, and nothing is lost", arguments: formats)
    func renaming(format: ByteString) throws {
      try withTwins(format) { upper, mount in
        let folder = mount.point / "Textures/ui"
        let before = try folder.names()
        #expect(try errorNumber { try folder.rename(to: mount.point / "other") } == .crossDeviceLink)
        #expect(try folder.names() == before)
        // Nor where the layers below have nothing of it.
        for name in ["Own", "own"] as [ByteString] {
          try (upper / name).makeDirectory()
          try (upper / name / name).write(name.text)
        }
        try mount.barrier()
        let own = mount.point / "OWN"
        #expect(try errorNumber { try own.rename(to: mount.point / "other") } == .crossDeviceLink)
        #expect(try errorNumber { try own.removeDirectory() } == .directoryNotEmpty)
        #expect(try (upper / "Own").names() == ["Own"])
        #expect(try (upper / "own").names() == ["own"])
        try (own / "own").remove()
        #expect(try errorNumber { try own.removeDirectory() } == .directoryNotEmpty)
        try (own / "OWN").remove()
        try own.removeDirectory()
        #expect(!own.exists && !(upper / "Own").exists && !(upper / "own").exists)
      }
    }

    @Test(
      "the removal of a folder of several removes all, and nothing below comes to light", arguments: formats)
    func removal(format: ByteString) throws {
      try withTwins(format) { upper, mount in
        let folder = mount.point / "Textures/Ui"
        #expect(try errorNumber { try folder.removeDirectory() } == .directoryNotEmpty)
        var rounds = 0
        while let name = try folder.names().first, rounds < 10 {
          try (folder / name).remove()
          rounds += 1
        }
        #expect(rounds == 6)
        #expect(try folder.names() == [])
        try folder.removeDirectory()
        #expect(!folder.exists)
        #expect(try (mount.point / "Textures").names() == [])
        try folder.makeDirectory()
        #expect(try folder.names() == [])
        let left = try (upper / "textures").names().filter {
          !$0.hasPrefix(".wh.") && !(upper / "textures" / $0).isWhiteout
        }
        #expect(left == ["Ui"])
      }
    }

    @Test("an empty folder of several is replaced", arguments: formats)
    func replacing(format: ByteString) throws {
      try withTwins(format) { upper, mount in
        let folder = mount.point / "Textures/ui"
        while let name = try folder.names().first { try (folder / name).remove() }
        try (mount.point / "new").makeDirectory()
        try (mount.point / "new/file").write("new")
        try (mount.point / "new").rename(to: folder)
        #expect(try folder.names() == ["file"])
        #expect(!(mount.point / "textures/UI/base.dds").exists)
        try (mount.point / "Textures/UI/file").remove()
        try folder.removeDirectory()
        #expect(!folder.exists)
      }
    }

    @Test("the worker dies between changes", .timeLimit(.minutes(2)), arguments: formats)
    func deaths(format: ByteString) throws {
      try withTwins(format) { upper, mount in
        let folder = mount.point / "Textures/uI"
        for round in 0..<4 {
          try (folder / ByteString("file\(round)")).write("\(round)")
          let former = mount.worker
          kill(former, SIGKILL)
          try #require(eventually(within: 20) { ![former, mount.process.pid].contains(mount.worker) })
          #expect(try (folder / ByteString("FILE\(round)")).readText() == "\(round)")
          #expect(try (folder / "UPPER.dds").readText() == "upper.dds")
          #expect(try (folder / "LOWER.dds").readText() == "lower.dds")
          try (folder / ByteString("FILE\(round)")).remove()
          try (upper / "textures/UI" / ByteString("below\(round)")).write("below")
          try mount.barrier()
          #expect((folder / ByteString("BELOW\(round)")).exists)
        }
        #expect(try (upper / "textures/ui").names() == ["Both", "lower.dds"])
      }
    }

    @Test("a second folder that comes from below while the first is shown")
    func live() throws {
      try withTwins("whiteouts=devices") { upper, mount in
        for name in ["Dir", "dir"] as [ByteString] {
          try (upper / name).makeDirectory()
          try (upper / name / ByteString("in \(name)")).write(name.text)
          try mount.barrier()
          #expect(try (mount.point / "DIR").names() == ["in Dir"])
        }
        #expect(try (mount.point / "dir/IN dir").readText() == "Dir")
        (upper / "Dir").removeTree()
        try mount.barrier()
        #expect(try (mount.point / "Dir/in DIR").readText() == "dir")
        (upper / "dir").removeTree()
        try mount.barrier()
        #expect(!(mount.point / "dir").exists)
      }
    }
  }
}
