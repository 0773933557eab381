import Glibc
import Posix
import TestSupport
import Testing

/// A layer on a local disk that stops answering: ext4 on a loop device, the image of which lies on a stopped FUSE mount.
extension MountTests.ExclusiveTests {
  @Suite struct LocalDiskTests {
    /// A read-only file system with the folders `d0` to `d9`, a file in each.
    private final class Disk {
      let root: ByteString
      private let device: String
      private let server: Mount

      init(in folder: TemporaryFolder) throws {
        let (backing, inner) = (try folder.folder("backing"), try folder.folder("inner"))
        root = try folder.folder("disk")
        let image = backing / "image"
        try Command("truncate", "-s", "16M", image.text).check()
        let content = try folder.folder("content")
        for number in 0..<10 {
          let inside = content / ByteString("d\(number)")
          try inside.makeDirectory()
          try (inside / "file").write("disk\n")
        }
        try Command("mkfs.ext4", "-q", "-F", "-d", content.text, image.text).check()
        var setup = MountSetup(main: backing, point: inner)
        setup.options = ["cache=none"]
        server = try Mount(setup)
        device = String(
          try Command("losetup", "--read-only", "--find", "--show", (inner / "image").text).check()
            .outputText.dropLast())
        do { try Command("mount", "-o", "ro,noload", device, root.text).check() } catch {
          _ = try? Command("losetup", "--detach", device).run()
          throw error
        }
      }

      func stop() throws {
        server.signalWorker(SIGSTOP)
        try Command.shell("echo 3 > /proc/sys/vm/drop_caches").check()
      }

      func resume() { server.signalWorker(SIGCONT) }

      deinit {
        resume()
        _ = try? Command("umount", "-l", root.text).run()
        _ = try? Command("losetup", "--detach", device).run()
      }
    }

    @Test("a disk that stops answering holds up no change of another layer", .timeLimit(.minutes(1)))
    func changes() throws {
      let fixture = try Fixture(isFilled: false)
      let disk = try Disk(in: fixture.folder)
      let setup = MountSetup(main: disk.root, point: fixture.point, substitutions: [fixture.substitution])
      try withMount(setup) { mount in
        try (fixture.substitution / "file").write("old\n")
        try mount.barrier()
        #expect(try (mount.point / "file").readText() == "old\n")
        #expect(try mount.point.list().count > 10)
        try disk.stop()
        defer { disk.resume() }
        // The invalidator has to look whether the disk has such folders, too.
        for number in 0..<10 { try (fixture.substitution / ByteString("d\(number)")).makeDirectory() }
        try (fixture.substitution / "file").write("new\n")
        let waiting = try Child(Command("cat", (mount.point / "d7/file").text))
        let isSeen = eventually(within: 20) {
          (try? Command("cat", (mount.point / "file").text).run(timeout: 20).outputText) == "new\n"
        }
        #expect(isSeen)
        try mount.barrier()
        #expect(waiting.status() == nil, "the disk has answered")
        disk.resume()
        #expect(eventually(within: 20) { waiting.status() != nil })
        #expect(try (mount.point / "d3/file").readText() == "disk\n")
      }
    }
  }
}
