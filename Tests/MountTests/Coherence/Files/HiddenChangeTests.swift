import Glibc
import Posix
import TestSupport
import Testing

/// Changes made through paths that were never looked up in the mount.
extension MountTests {
  @Suite struct HiddenChangeTests {
    /// The location of a file's other name.
    enum LinkLocation: CaseIterable {
      case inUnvisitedFolder
      case inHiddenFolder
      case outside

      func path(_ fixture: Fixture) -> ByteString {
        switch self {
        case .inUnvisitedFolder: fixture.main / "only/deep/other"
        case .inHiddenFolder: fixture.main / ".wh.folder/other"
        case .outside: fixture.folder / "other"
        }
      }
    }

    @Test(
      "a file is changed under another of its names", .timeLimit(.minutes(1)),
      arguments: LinkLocation.allCases)
    func otherName(location: LinkLocation) throws {
      let fixture = try Fixture()
      try (fixture.main / ".wh.folder").makeDirectory()
      try (fixture.main / "file").write("before")
      let path = location.path(fixture)
      try path.makeHardLink(of: fixture.main / "file")
      try withMount(fixture.setup) { mount in
        let seen = mount.point / "file"
        for round in 0..<5 {
          _ = try seen.status()
          _ = try seen.read()
          let text = String(repeating: "round \(round) ", count: round + 1)
          try path.write(text)
          try mount.barrier()
          #expect(try seen.readText() == text)
          #expect(try seen.status().size == Int64(text.utf8.count))
          try path.setMode(UInt32(0o600 + round))
          try mount.barrier()
          #expect(try seen.status().permissions == UInt32(0o600 + round))
        }
        try path.remove()
        try mount.barrier()
        #expect(try seen.status().links == 1)
      }
    }

    @Test(
      "a file is changed under a new name, and its mtime restored", .timeLimit(.minutes(1)),
      arguments: [true, false])
    func newName(isImmediate: Bool) throws {
      let fixture = try Fixture()
      let file = fixture.main / "only/deep/file.txt"
      let link = fixture.main / "new"
      let before = try file.status().modified
      try withMount(fixture.setup) { mount in
        #expect(!(mount.point / "new").exists)
        for path in ["plain.txt", "only/deep/file.txt"] as [ByteString] {
          _ = try (mount.point / path).read()
        }
        try link.makeHardLink(of: file)
        if !isImmediate { try mount.barrier() }
        try link.overwrite([UInt8]("DEEP".utf8), at: 0)
        try link.setModified(before)
        try mount.barrier()
        #expect(try (mount.point / "only/deep/file.txt").readText() == "DEEP\n")
        #expect(try (mount.point / "new").readText() == "DEEP\n")
      }
    }

    @Test("a file is written through a mapping", .timeLimit(.minutes(1)))
    func mapping() throws {
      let fixture = try Fixture()
      let file = fixture.main / "file"
      try file.write([UInt8](repeating: UInt8(ascii: "b"), count: 20_000))
      try withMount(fixture.setup) { mount in
        _ = try (mount.point / "file").read()
        try file.withOpen(O_RDWR) { open in
          guard let map = mmap(nil, 20_000, PROT_READ | PROT_WRITE, MAP_SHARED, open, 0), map != MAP_FAILED
          else { throw DiskError("mmap", file, .current) }
          memset(map + 5000, CInt(UInt8(ascii: "a")), 10_000)
          munmap(map, 20_000)
        }
        // Stores to a mapping cause no event, but closing the file does.
        try mount.barrier()
        _ = try (mount.point / "file").status()
        #expect(try (mount.point / "file").read() == file.read())
      }
    }

    @Test(
      "an open file is changed after its folder was moved away", .timeLimit(.minutes(1)),
      arguments: [0, 1, 2])
    func movedFolder(depth: Int) throws {
      let fixture = try Fixture()
      let folders = ["f", "f/f", "f/f/f"].map { ByteString($0) }
      for folder in folders { try (fixture.main / folder).makeDirectory() }
      let away = fixture.folder / "away"
      let path = folders[depth] / "file"
      try (fixture.main / path).write("before")
      try withMount(fixture.setup) { mount in
        try (mount.point / path).withOpen(O_RDONLY) { file in
          #expect(try ByteString.readAll(file) == [UInt8]("before".utf8))
          try (fixture.main / "f").rename(to: away)
          try mount.barrier()
          try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / path).status() }
          let moved = away / ByteString(String(path.text.dropFirst(2)))
          for text in ["after, and longer", "again"] {
            try moved.write(text)
            try mount.barrier()
            lseek(file, 0, SEEK_SET)
            #expect(try ByteString.readAll(file) == [UInt8](text.utf8))
          }
        }
      }
    }

    @Test("each write to a file that stays open is visible", .timeLimit(.minutes(1)))
    func longWriter() throws {
      let fixture = try Fixture()
      let file = fixture.main / "file"
      try file.write("")
      try withMount(fixture.setup) { mount in
        #expect(try (mount.point / "file").read() == [])
        try file.withOpen(O_WRONLY | O_APPEND) { open in
          var expected: [UInt8] = []
          for round in 0..<50 {
            let line = [UInt8]("line \(round)\n".utf8)
            #expect(write(open, line, line.count) == line.count)
            expected += line
            try mount.barrier()
            #expect(try (mount.point / "file").read() == expected)
          }
        }
      }
    }
  }
}
