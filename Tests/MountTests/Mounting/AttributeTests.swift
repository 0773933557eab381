import Glibc
import Posix
import TestSupport
import Testing

/// Extended attributes, holes and statfs.
extension MountTests {
  @Suite struct AttributeTests {
    @Test("extended attributes name the layer and backing file of every entry", .timeLimit(.minutes(1)))
    func origin() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount throws in
        for (path, layer) in [
          ("plain.txt", fixture.main), ("replaced.txt", fixture.substitution),
          ("folder/inner.txt", fixture.main), ("folder/added.txt", fixture.substitution),
          ("folder", fixture.substitution), ("only/deep", fixture.main),
        ] as [(ByteString, ByteString)] {
          #expect(try (mount.point / path).attribute("user.bundlefs.layer") == layer.bytes, "\(path)")
          #expect(try (mount.point / path).attribute("user.bundlefs.path") == (layer / path).bytes, "\(path)")
        }
        #expect(try !mount.point.attribute("user.bundlefs.version").isEmpty)
        #expect(try mount.point.attribute("user.bundlefs.path") == fixture.substitution.bytes)
      }
    }

    @Test("the extended attributes of the backing file are visible", .timeLimit(.minutes(1)))
    func backingAttributes() throws {
      let fixture = try Fixture()
      try (fixture.main / "plain.txt").setAttribute("user.comment", [UInt8]("hello".utf8))
      try (fixture.main / "replaced.txt").setAttribute("user.comment", [UInt8]("hidden".utf8))
      try (fixture.main / "plain.txt").setAttribute("user.long", [UInt8](repeating: 7, count: 3000))
      try (fixture.main / "plain.txt").setAttribute("user.empty", [])
      try withMount(fixture.setup) { mount in
        let file = mount.point / "plain.txt"
        #expect(try file.attribute("user.comment") == [UInt8]("hello".utf8))
        #expect(try file.attribute("user.long") == [UInt8](repeating: 7, count: 3000))
        #expect(try file.attribute("user.empty") == [])
        let names = try file.attributeNames()
        #expect(Set(names).isSuperset(of: ["user.comment", "user.long", "user.empty"]))
        #expect(Set(names).count == names.count)
        try expectErrno(.noData) { _ = try file.attribute("user.nosuch") }
        try expectErrno(.noData) { _ = try (mount.point / "replaced.txt").attribute("user.comment") }
        try (fixture.main / "plain.txt").setAttribute("user.comment", [UInt8]("changed".utf8))
        #expect(try file.attribute("user.comment") == [UInt8]("changed".utf8))
      }
    }

    @Test("xattr=off refuses extended attributes", .timeLimit(.minutes(1)))
    func attributesOff() throws {
      let fixture = try Fixture()
      try (fixture.main / "plain.txt").setAttribute("user.comment", [1])
      try withMount(fixture.setup("xattr=off")) { mount in
        for _ in 0..<2 {
          try expectErrno(.notSupported) { _ = try (mount.point / "plain.txt").attribute("user.comment") }
          try expectErrno(.notSupported) { _ = try mount.point.attribute("user.bundlefs.version") }
        }
        try expectFixture(at: mount.point)
      }
    }

    @Test("SEEK_HOLE and SEEK_DATA find the holes of the backing file", .timeLimit(.minutes(1)))
    func holes() throws {
      let fixture = try Fixture()
      let file = fixture.main / "sparse"
      try file.write("")
      try file.setSize(8 << 20)
      try file.overwrite([UInt8](repeating: 1, count: 65536), at: 1 << 20)
      try file.overwrite([UInt8](repeating: 2, count: 65536), at: 5 << 20)
      try withMount(fixture.setup) { mount in
        let seen = try extents(mount.point / "sparse")
        #expect(try seen == extents(file))
        #expect(seen.count >= 4)
        try (mount.point / "sparse").withOpen(O_RDONLY) { open in
          // SEEK_DATA beyond the end.
          #expect(lseek(open, 9 << 20, 3) == -1)
          #expect(errno == ENXIO)
        }
      }
    }

    /// The offsets where data and holes begin, alternating.
    private func extents(_ path: ByteString) throws -> [Int] {
      try path.withOpen(O_RDONLY) { file in
        var offsets: [Int] = []
        var offset = 0
        for _ in 0..<20 {
          for whence: CInt in [3, 4] {
            offset = lseek(file, offset, whence)
            if offset < 0 { return offsets }
            offsets.append(offset)
          }
        }
        return offsets
      }
    }

    @Test("statfs returns plausible values", .timeLimit(.minutes(1)))
    func statistics() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        var statistics = statvfs()
        try mount.point.call("statvfs") { statvfs($0, &statistics) }
        #expect(statistics.f_blocks > 0 && statistics.f_bsize > 0)
        #expect(statistics.f_namemax == 255)
        try Command("df", mount.point.text).check(timeout: 10)
      }
    }
  }
}
