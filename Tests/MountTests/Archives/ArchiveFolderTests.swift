import Glibc
import Posix
import TestSupport
import Testing

/// Folders that take the places of archives.
extension MountTests {
  @Suite struct ArchiveFolderTests {
    /// A mount whose substitution, or whose MAIN, is an archive.
    private func setup(_ fixture: Fixture, isMain: Bool) throws -> (setup: MountSetup, archive: ByteString) {
      let archive = fixture.folder / "layer.zip"
      try archive.write(ZipBuilder([.init("packed", "packed"), .init("plain.txt", "zip\n")]).bytes)
      var setup = fixture.setup
      if isMain { setup.main = archive } else { setup.substitutions = [archive] }
      return (setup, archive)
    }

    private func replace(_ archive: ByteString) throws {
      let folder = archive.parent / "new"
      try folder.makeDirectory()
      try (folder / "in folder").write("folder")
      try (folder / "plain.txt").write("folder's\n")
      try archive.remove()
      try folder.rename(to: archive)
    }

    @Test(
      "a folder that takes an archive's place shows, and so do later changes in it", .timeLimit(.minutes(2)),
      arguments: [false, true])
    func taken(isMain: Bool) throws {
      let fixture = try Fixture()
      let (setup, archive) = try setup(fixture, isMain: isMain)
      try withMount(setup) { mount in
        #expect(try (mount.point / "plain.txt").readText() == "zip\n")
        try (mount.point / "packed").withOpen(O_RDONLY) { file in
          try replace(archive)
          let isShown = eventually(within: 30) {
            (try? (mount.point / "in folder").readText()) == "folder" && !(mount.point / "packed").exists
          }
          #expect(isShown)
          #expect(try (mount.point / "plain.txt").readText() == "folder's\n")
          // A program that has an entry of the archive open goes on with it.
          #expect(try ByteString.text(of: file) == "packed")
        }
        let layer = try #require(try mount.report().layers.first { $0.path == archive.text })
        #expect(layer.caching && layer.reason == nil)
        try (archive / "later").write("later")
        try mount.barrier()
        #expect(try (mount.point / "later").readText() == "later")
      }
    }

    @Test(
      "without another process the status says that a folder has taken the place", .timeLimit(.minutes(1)))
    func refused() throws {
      let fixture = try Fixture()
      var (setup, archive) = try setup(fixture, isMain: false)
      setup.options = ["survive=off"]
      try withMount(setup) { mount in
        #expect(try (mount.point / "packed").readText() == "packed")
        try replace(archive)
        try mount.barrier()
        let status = try mount.command("status").outputText
        #expect(status.contains("a folder has taken its place"), "\(status)")
        #expect(try (mount.point / "packed").readText() == "packed")
      }
    }
  }
}
