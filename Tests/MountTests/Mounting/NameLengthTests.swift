import Glibc
import Posix
import TestSupport
import Testing

extension MountTests {
  @Suite struct NameLengthTests {
    @Test("a name of more than 255 bytes is ENAMETOOLONG, as on other file systems", .timeLimit(.minutes(1)))
    func tooLong() throws {
      let folder = try TemporaryFolder()
      let main = try folder.folder("main")
      let longest = ByteString([UInt8](repeating: 0x78, count: 255))
      try (main / longest).write("longest")
      _ = try folder.folder("main/directory")
      let setup = MountSetup(main: main, point: try folder.folder("mount"))
      try withMount(setup) { mount in
        let text = try (mount.point / longest).readText()
        #expect(text == "longest")
        for path in [mount.point, mount.point / "directory", mount.point / "rsrc:"] {
          for length in [256, 257, 1000, 1024, 2000] {
            let name = ByteString([UInt8](repeating: 0x79, count: length))
            #expect(access((path / name).text, F_OK) == -1 && errno == ENAMETOOLONG, "\(path) \(length)")
            #expect(mkdir((path / name).text, 0o700) == -1 && errno == ENAMETOOLONG)
          }
          #expect(access((path / "missing").text, F_OK) == -1 && errno == ENOENT)
        }
      }
    }

    @Test("in the resource directory a percent-encoded name may be longer", .timeLimit(.minutes(1)))
    func encoded() throws {
      let folder = try TemporaryFolder()
      let main = try folder.folder("main")
      let name = [UInt8](repeating: 0x78, count: 200)
      try (main / ByteString(name)).write("found")
      let setup = MountSetup(main: main, point: try folder.folder("mount"))
      try withMount(setup) { mount in
        let encoded = ByteString(name.flatMap { _ in Array("%78".utf8) })
        let text = try (mount.point / "rsrc:" / encoded).readText()
        #expect(text == "found")
      }
    }
  }
}
