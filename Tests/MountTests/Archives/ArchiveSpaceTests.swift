import Glibc
import Posix
import TestSupport
import Testing

extension MountTests {
  @Suite struct ArchiveSpaceTests {
    @Test("an entry is read to its end although the temporary folder becomes full", .timeLimit(.minutes(1)))
    func full() throws {
      let folder = try TemporaryFolder()
      let disk = try folder.folder("disk")
      try Command(["mount", "-t", "tmpfs", "-o", "size=14m", "tmpfs", disk]).check()
      defer { _ = try? Command(["umount", "-l", disk]).run() }
      let content = [UInt8](unsafeUninitializedCapacity: 12 << 20) { buffer, count in
        for index in 0..<(12 << 20) { buffer[index] = UInt8(truncatingIfNeeded: index &* 31 &+ index >> 8) }
        count = buffer.count
      }
      let archive = folder / "archive.zip"
      try archive.write(ZipBuilder([.init("entry", content, .deflated)]).bytes)
      var setup = MountSetup(main: archive, point: try folder.folder("mount"))
      setup.environment["TMPDIR"] = disk.text
      try withMount(setup) { mount in
        // The rest is decoded when it is read.
        let file = try Descriptor.open((mount.point / "entry").bytes, [.read])
        let first = UnsafeMutableRawBufferPointer.allocate(byteCount: 1000, alignment: 16)
        defer { first.deallocate() }
        #expect(try file.read(into: first, at: 0) == 1000 && first.elementsEqual(content.prefix(1000)))
        try Self.fill(disk / "filler")
        let all = try (mount.point / "entry").read()
        #expect(all == content)
      }
    }

    private static func fill(_ path: ByteString) throws {
      let chunk = [UInt8](repeating: 0, count: 4096)
      try path.write([])
      let file = try Descriptor.open(path.bytes, [.write])
      while write(file.rawValue, chunk, chunk.count) > 0 {}
    }
  }
}
