import Glibc
import Posix
import TestSupport
import Testing

/// Layers whose file system is lost and comes back.
extension MountTests.ExclusiveTests {
  @Suite struct LostLayerTests {
    @Test("a layer's daemon dies: accesses fail with EIO until it is mounted again", .timeLimit(.minutes(1)))
    func deadLayer() throws {
      let fixture = try Fixture()
      let backing = try fixture.folder.folder("backing")
      let inner = try fixture.folder.folder("inner")
      try (backing / "plain.txt").write("the inner one's\n")
      var innerSetup = MountSetup(main: backing, point: inner)
      innerSetup.options = ["cache=none", "survive=off"]
      let setup = MountSetup(main: fixture.main, point: fixture.point, substitutions: [inner])
      let first = try Mount(innerSetup)
      try withMount(setup) { mount in
        let file = mount.point / "plain.txt"
        #expect(try file.readText() == "the inner one's\n")
        first.process.signal(SIGKILL)
        try expectEventually { try errorNumber { _ = try file.status() } == .ioError }
        // The outer mount is alive and must not be cleared as stale.
        let second = try setup.command(foreground: true).run(timeout: 20)
        #expect(
          second.status == 1 && second.errorText.contains("already mounted there"), "\(second.errorText)")
        #expect(mount.process.status() == nil)

        let restarted = try innerSetup.command(foreground: false).run(timeout: 20)
        #expect(restarted.status == 0, "\(restarted.errorText)")
        try (backing / "plain.txt").write("the inner one's, again\n")
        try expectEventually { try file.readText() == "the inner one's, again\n" }
        #expect(try (mount.point / "folder/inner.txt").readText() == "main's inner\n")
      }
      try Command([try Binary.underTest(), "unmount", inner]).check()
    }

    @Test("a mount with a dead layer can be unmounted", .timeLimit(.minutes(1)))
    func unmounting() throws {
      let fixture = try Fixture()
      let inner = try fixture.folder.folder("inner")
      var innerSetup = MountSetup(main: fixture.substitution, point: inner)
      innerSetup.options = ["survive=off"]
      let first = try Mount(innerSetup)
      try withMount(MountSetup(main: inner, point: fixture.point)) { mount in
        first.process.signal(SIGKILL)
        try expectEventually { try errorNumber { _ = try (mount.point / "other").status() } == .ioError }
      }
    }

    @Test("a disk is removed, unmounted, and mounted again", .timeLimit(.minutes(1)))
    func unplugged() throws {
      let fixture = try Fixture()
      let images = ["first", "second"].map { fixture.folder / ByteString($0) }
      let disk = try fixture.folder.folder("disk")
      try makeDisk(images[0], at: disk)
      try Command("cp", images[0].text, images[1].text).check()
      try Command("mount", "-o", "loop", images[1].text, disk.text).check()
      try (disk / "folder/added").write("meanwhile\n")
      try Command("umount", disk.text).check()
      try Command("mount", "-o", "loop", images[0].text, disk.text).check()
      let setup = MountSetup(main: fixture.main, point: fixture.point, substitutions: [disk])
      try withMount(setup) { mount in
        let file = mount.point / "folder/of-disk"
        #expect(!(mount.point / "folder/added").exists)
        try mount.warmCaches()
        #expect(try file.readText() == "on the disk\n")
        try shutDown(disk)
        // Uncached content of the disk is lost, that of other layers is not.
        try expectErrno(.ioError) { _ = try (mount.point / "unread").read() }
        #expect(try (mount.point / "plain.txt").readText() == "main's plain\n")
        try mount.barrier()
        try Command("umount", disk.text).check()
        try expectEventually { try errorNumber { _ = try (mount.point / "folder/other").status() } != nil }
        #expect(mount.process.status() == nil)

        try Command("mount", "-o", "loop", images[1].text, disk.text).check()
        try expectEventually { try file.readText() == "on the disk\n" }
        try expectEventually { (mount.point / "folder/added").exists }
        try expectRecovery(mount)
        #expect(try (mount.point / "unread").readText() == "not read at first\n")
        try expectChangesSeen(mount, in: disk)
        try expectChangesSeen(mount, in: fixture.main)
        try expectNoRequests(mount)
      }
      try Command("umount", disk.text).check()
    }

    @Test("a layer's file system is remounted", .timeLimit(.minutes(1)))
    func remounted() throws {
      let fixture = try Fixture()
      try Command("mount", "-t", "tmpfs", "tmpfs", fixture.substitution.text).check()
      try (fixture.substitution / "plain.txt").write("before\n")
      try withMount(fixture.setup) { mount in
        for round in 1...3 {
          try mount.warmCaches()
          try Command("umount", fixture.substitution.text).check()
          try Command("mount", "-t", "tmpfs", "tmpfs", fixture.substitution.text).check()
          try (fixture.substitution / "plain.txt").write("after \(round)\n")
          try expectEventually { try (mount.point / "plain.txt").readText() == "after \(round)\n" }
          try expectRecovery(mount)
          try expectChangesSeen(mount, in: fixture.substitution)
        }
      }
    }

    @Test("the file system of an archive is remounted", .timeLimit(.minutes(1)))
    func remountedArchive() throws {
      let fixture = try Fixture()
      let disk = try fixture.folder.folder("disk")
      let mountDisk = { (round: Int) in
        try Command("mount", "-t", "tmpfs", "tmpfs", disk.text).check()
        let archive = ZipBuilder([
          .init("plain.txt", "round \(round)\n"), .init(ByteString("folder/\(round)"), "new\n"),
        ])
        try Command("touch", (disk / "archive.zip").text).check()
        try (disk / "archive.zip").overwrite(archive.bytes, at: 0)
      }
      try mountDisk(0)
      let setup = MountSetup(
        main: fixture.main, point: fixture.point, substitutions: [disk / "archive.zip"])
      try withMount(setup) { mount in
        for round in 1...3 {
          try mount.warmCaches()
          #expect(try (mount.point / "plain.txt").readText() == "round \(round - 1)\n")
          try Command("umount", "-l", disk.text).check()
          // The daemon keeps the last good state of the archive.
          #expect(try (mount.point / "plain.txt").readText() == "round \(round - 1)\n")
          try mountDisk(round)
          try expectEventually { try (mount.point / "plain.txt").readText() == "round \(round)\n" }
          try expectEventually { (mount.point / "folder" / ByteString("\(round)")).exists }
        }
      }
      try Command("umount", disk.text).check()
    }

    /// Makes a small ext4 file system in a file.
    private func makeDisk(_ image: ByteString, at folder: ByteString) throws {
      try Command("truncate", "-s", "16M", image.text).check()
      try Command("mkfs.ext4", "-q", "-F", image.text).check()
      try Command("mount", "-o", "loop", image.text, folder.text).check()
      try (folder / "folder").makeDirectory()
      try (folder / "folder/of-disk").write("on the disk\n")
      try (folder / "unread").write("not read at first\n")
      try Command("umount", folder.text).check()
    }

    /// Makes every access to the file system fail with EIO, as if the disk were removed.
    private func shutDown(_ folder: ByteString) throws {
      try folder.withOpen(O_RDONLY | O_DIRECTORY) { file in
        let shutdown: UInt = 0x8004_587D  // FS_IOC_SHUTDOWN
        var withoutFlush: UInt32 = 2  // FS_SHUTDOWN_FLAGS_NOLOGFLUSH
        if ioctl(file, shutdown, &withoutFlush) != 0 { throw Errno.current }
      }
      try Command.shell("echo 3 > /proc/sys/vm/drop_caches").check()
    }
  }
}
