import Glibc
import Posix
import TestSupport
import Testing

/// Files that change while a program has them open.
extension MountTests {
  @Suite struct OpenReaderTests {
    private static let size = 3 * 1024 * 1024

    private static func content(_ byte: Character) -> [UInt8] {
      [UInt8](repeating: byte.asciiValue ?? 0, count: size)
    }

    @Test("a reader keeps the old content after a replacement", .timeLimit(.minutes(1)))
    func replacedFile() throws {
      let fixture = try Fixture()
      let files = [(fixture.main, "m"), (fixture.substitution, "s")] as [(ByteString, ByteString)]
      for (layer, name) in files { try (layer / name).write(Self.content("o")) }
      try withMount(fixture.setup) { mount in
        for (layer, name) in files {
          try expectOldContent(mount, name, afterReading: 1000) {
            try (layer / name).replace(Self.content("n"))
          }
          #expect(try (mount.point / name).read() == Self.content("n"))
        }
      }
    }

    @Test("a reader keeps the old content when an override appears", .timeLimit(.minutes(1)))
    func overriddenFile() throws {
      let fixture = try Fixture()
      try (fixture.main / "m").write(Self.content("o"))
      try withMount(fixture.setup) { mount in
        try expectOldContent(mount, "m", afterReading: 1) {
          try (fixture.substitution / "m").replace(Self.content("n"))
        }
        #expect(try (mount.point / "m").read() == Self.content("n"))
      }
    }

    @Test("a reader keeps the content of a deleted file", .timeLimit(.minutes(1)))
    func deletedFile() throws {
      let fixture = try Fixture()
      try (fixture.main / "m").write(Self.content("o"))
      try withMount(fixture.setup) { mount in
        try expectOldContent(mount, "m", afterReading: 1) { try (fixture.main / "m").remove() }
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "m").status() }
      }
    }

    /// A reader that has read `count` bytes before the change reads the rest of the old content after it.
    private func expectOldContent(
      _ mount: Mount, _ name: ByteString, afterReading count: Int,
      location: SourceLocation = #_sourceLocation,
      after change: () throws -> Void
    ) throws {
      try (mount.point / name).withOpen(O_RDONLY) { file in
        var first = [UInt8](repeating: 0, count: count)
        #expect(read(file, &first, count) == count, sourceLocation: location)
        try change()
        try mount.barrier()
        let rest = try ByteString.readAll(file)
        #expect(first + rest == Self.content("o"), sourceLocation: location)
      }
    }

    @Test(
      "an open file that was not read yet has the old or the new content, not a mixture",
      .timeLimit(.minutes(1)))
    func unreadFile() throws {
      let fixture = try Fixture()
      try (fixture.main / "m").write(Self.content("o"))
      try withMount(fixture.setup) { mount in
        for round in 0..<10 {
          try (fixture.main / "m").replace(Self.content("o"))
          try mount.barrier()
          try (mount.point / "m").withOpen(O_RDONLY) { file in
            // A different size reveals a mixture of old attributes and new content.
            let new = Self.content("n") + (round % 2 == 0 ? [] : [UInt8(ascii: "n")])
            try (fixture.main / "m").replace(new)
            // The daemon may or may not have processed the event.
            if round % 3 == 0 { try mount.barrier() }
            let seen = try ByteString.readAll(file)
            #expect(seen == Self.content("o") || seen == new, "\(seen.count) bytes, \(Set(seen))")
          }
        }
      }
    }

    @Test("an open reader sees a change in place", .timeLimit(.minutes(1)))
    func changeInPlace() throws {
      let fixture = try Fixture()
      let file = fixture.substitution / "replaced.txt"
      try withMount(fixture.setup) { mount in
        for round in 0..<10 {
          let seen = mount.point / "replaced.txt"
          try file.write("round \(round), before")
          try mount.barrier()
          try seen.withOpen(O_RDONLY) { open in
            #expect(try ByteString.readAll(open) == [UInt8]("round \(round), before".utf8))
            try file.overwrite([UInt8]("ROUND".utf8), at: 0)
            try mount.barrier()
            #expect(try seen.readText() == "ROUND \(round), before")
            lseek(open, 0, SEEK_SET)
            #expect(try ByteString.readAll(open) == [UInt8]("ROUND \(round), before".utf8))
            try file.write("round \(round), and now longer than before")
            try mount.barrier()
            #expect(try seen.readText() == "round \(round), and now longer than before")
            try file.write("short")
            try mount.barrier()
            #expect(try seen.readText() == "short")
          }
        }
      }
    }

    @Test("a mapping keeps the old content after a replacement", .timeLimit(.minutes(1)))
    func mapping() throws {
      let fixture = try Fixture()
      try (fixture.main / "m").write(Self.content("o"))
      try withMount(fixture.setup) { mount in
        try (mount.point / "m").withOpen(O_RDONLY) { file in
          guard let map = mmap(nil, Self.size, PROT_READ, MAP_PRIVATE, file, 0), map != MAP_FAILED else {
            throw DiskError("mmap", mount.point / "m", .current)
          }
          defer { munmap(map, Self.size) }
          let bytes = UnsafeRawBufferPointer(start: map, count: Self.size)
          #expect(bytes[0] == UInt8(ascii: "o"))
          try (fixture.main / "m").replace(Self.content("n"))
          try mount.barrier()
          #expect(try (mount.point / "m").read() == Self.content("n"))
          #expect(bytes.allSatisfy { $0 == UInt8(ascii: "o") })
        }
      }
    }
  }
}
