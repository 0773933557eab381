import Glibc
import Posix
import TestSupport
import Testing

/// Files in layers that are made to harm the daemon. It must answer, and end in order, which `withMount` checks.
extension MountTests {
  @Suite struct HostileInputTests {
    /// A binary property list whose root is an array of 2⁶⁴ - 1 elements.
    private static let hugeArray: [UInt8] =
      Array("bplist00".utf8) + [0xAF, 0x13] + [UInt8](repeating: 0xFF, count: 8) + [
        8, 0, 0, 0, 0, 0, 0, 1, 1,
      ]
      + [0, 0, 0, 0, 0, 0, 0, 1] + [UInt8](repeating: 0, count: 15) + [0x12]

    private static let nestedTags = Array(
      ("<plist>" + String(repeating: "<dict", count: 380_000) + "/>").utf8)

    @Test(
      "property lists with huge counts and endless tags", .timeLimit(.minutes(1)), arguments: [0, 1],
      [false, true])
    func propertyList(_ index: Int, isArchived: Bool) throws {
      let content = [Self.hugeArray, Self.nestedTags][index]
      let folder = try TemporaryFolder()
      var setup = MountSetup(main: folder / "main", point: try folder.folder("mount"))
      if isArchived {
        setup.main = folder / "main.zip"
        try setup.main.write(ZipBuilder([.init("Info.plist", content), .init("file", "x")]).bytes)
      } else {
        try (folder.folder("main") / "Info.plist").write(content)
        try (folder / "main/file").write("x")
      }
      try withMount(setup) { mount in
        #expect(access((mount.point / "rsrc:" / "missing").text, F_OK) == -1 && errno == ENOENT)
        let text = try (mount.point / "rsrc:" / "file").readText()
        #expect(text == "x")
        #expect(try Command([try Binary.underTest(), "status", mount.point]).run().status == 0)
      }
    }

    @Test("an archive whose time exceeds 64 bits of nanoseconds, also at a reload", .timeLimit(.minutes(1)))
    func time() throws {
      let folder = try TemporaryFolder()
      let archive = folder / "empty.zip"
      try archive.write(ZipBuilder([]).bytes)
      try Command(["touch", "-d", "2300-01-01", archive]).check()
      try withMount(MountSetup(main: archive, point: try folder.folder("mount"))) { mount in
        #expect(try mount.names() == [])
        try Command(["touch", "-d", "2400-01-01", archive]).check()
        try mount.barrier()
        #expect(try mount.names() == [])
        try archive.write(ZipBuilder([.init("a", "b")]).bytes)
        try mount.barrier()
        #expect(try mount.names() == ["a"])
      }
    }
  }
}
