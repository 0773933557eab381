import Posix
import TestSupport
import Testing

/// Layers that are archives or images of other kinds than zip, tar and 7z.
extension MountTests {
  @Suite struct OtherContainerMountTests {
    static let formats = [
      "newc", "odc", "cpio.gz", "iso", "joliet.iso", "zisofs.iso", "xar", "tar.lz4", "tar.lz", "tar.lzma",
      "tar.Z",
      "bin.cpio", "gnu.cpio", "crc.cpio", "ar", "deb", "cab", "rar", "rar5",
      "solid.rar5", "lzh",
    ]

    @Test(
      "a mount shows what bsdtar extracts, with modes, times and links", .timeLimit(.minutes(2)),
      arguments: formats)
    func extracted(format: String) throws {
      let folder = try TemporaryFolder()
      let script = ByteString(#filePath).parent / "foreign_archives.py"
      let archive = folder / "archive"
      try Command(["python3", script, "make", ByteString(format), archive]).check()
      var setup = MountSetup(main: archive, point: try folder.folder("mount"))
      setup.options = ["control=none"]
      try withMount(setup) { mount in
        let outcome = try Command(["python3", script, "compare", archive, mount.point]).check(timeout: 60)
        let lines = outcome.outputText.split(separator: "\n")
        #expect(lines.count == 1, "\(format): \(lines.prefix(5))")
        #expect(lines.last.flatMap { Int($0) } ?? 0 >= 3)
      }
    }

    @Test("status mentions a tar archive behind the one that is shown", .timeLimit(.minutes(1)))
    func appended() throws {
      let folder = try TemporaryFolder()
      try Command.shell(
        "cd \"$1\"; for n in a b; do echo $n > $n; tar -cf $n.tar $n; done; cat a.tar b.tar > both.tar",
        folder.path
      ).check()
      try withMount(MountSetup(main: folder / "both.tar", point: try folder.folder("mount"))) { mount in
        #expect(try mount.names() == ["a"])
        let status = try Command([try Binary.underTest(), "status", mount.point]).check().outputText
        #expect(status.contains("another tar archive follows its end"), "\(status)")
      }
    }
  }
}
