import Glibc
import Posix
import TestSupport
import Testing

/// What the disk of the upper layer has at a moment: a copy of the image under a file system that is in use is what a power
/// loss would leave, since nothing that the kernel still caches is in it.
extension MountTests {
  @Suite struct PowerLossTests {
    /// - Returns: what the body returns, which is passed the upper layer as a power loss would leave it.
    private func afterPowerLoss<Result>(
      _ format: String, _ change: (Mount) throws -> Void, _ body: (ByteString) throws -> Result
    ) throws -> Result {
      let fixture = try Fixture()
      let (image, copy) = (fixture.folder / "image", fixture.folder / "copy")
      let disk = try fixture.folder.folder("disk")
      let script =
        #"truncate -s 16M "$1" && mkfs.ext4 -q -O "$2" "$1" && mount -o loop "$1" "$3" && sync -f "$3""#
      try Command.shell(script, image, ByteString(format), fixture.substitution).check()
      try withWritable(fixture: fixture) { mount, _ in
        try change(mount)
        try Command("cp", image.text, copy.text).check()
      }
      try Command("mount", "-o", "loop", copy.text, disk.text).check()
      defer { MountTable.abandon(disk, isFuse: false) }
      return try body(disk)
    }

    /// Changes a file and has it written to disk.
    private func change(_ path: ByteString, _ text: String) throws {
      try path.withFile(O_RDWR | O_CREAT) { file in
        try ByteString.put(text, in: file, at: 0)
        #expect(fsync(file) == 0)
      }
    }

    @Test(
      "what a program has synchronized is there, with the names above it", .timeLimit(.minutes(1)),
      arguments: ["has_journal", "^has_journal"])
    func synchronized(format: String) throws {
      try afterPowerLoss(format) { mount in
        try change(mount.point / "only/deep/file.txt", "DEEP")
        try change(mount.point / "plain.txt", "MAIN")
      } _: { disk in
        let (deep, plain) = (disk / "only/deep/file.txt", disk / "plain.txt")
        let texts = try [deep.readText(), plain.readText()]
        #expect(texts == ["DEEP\n", "MAIN's plain\n"])
      }
    }

    @Test("a copy whose change is lost is whole", .timeLimit(.minutes(1)))
    func unsynchronized() throws {
      try afterPowerLoss("has_journal") { mount in
        try (mount.point / "plain.txt").overwrite(Array("MAIN".utf8), at: 0)
        // It has the journal written, with the copy's name.
        try change(mount.point / "other", "x")
      } _: { disk in
        let text = try (disk / "plain.txt").readText()
        #expect(text == "main's plain\n" || text == "MAIN's plain\n")
      }
    }
  }
}
