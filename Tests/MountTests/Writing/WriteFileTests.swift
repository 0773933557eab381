import Glibc
import Posix
import TestSupport
import Testing

/// Open files in a writable mount.
extension MountTests {
  @Suite struct WriteFileTests {
    @Test(
      "of a file of a layer below, the name that is changed is copied, and no other hard link",
      .timeLimit(.minutes(1)),
      arguments: [
        ("a", #"echo new > a"#), ("b", #"echo new >> b"#), ("sub/c", #"echo new > sub/c"#),
        ("a", #"chmod 600 a"#), ("sub/c", #"touch -d 2001-01-01 sub/c"#), ("b", #"truncate -s 1 b"#),
        ("b", #"chown 5 b"#), ("a", #"python3 -c 'open("a", "r+").write("z")'"#),
      ])
    func hardLinks(name: String, change: String) throws {
      try withWritable { mount, fixture in
        let script = #"cd "$1" && mkdir sub && echo old > a && ln a b && ln a sub/c"#
        try Command.shell(script, fixture.main).check()
        try mount.barrier()
        // All names are known to the kernel.
        let look = #"cd "$1" && ls -lR > "$1.seen" && cat a b sub/c b a >> "$1.seen"; rm "$1.seen"; "#
        try Command.shell(look + change, mount.point).check()
        let paths = ["a", "b", "sub/c"]
        let copied = paths.filter { (fixture.substitution / ByteString($0)).exists }
        #expect(copied == [name])
        for path in paths where path != name {
          #expect(try (mount.point / ByteString(path)).readText() == "old\n", "\(path)")
        }
        let (shown, copy) = (mount.point / ByteString(name), fixture.substitution / ByteString(name))
        #expect(try shown.readText() == copy.readText())
        #expect(try shown.status().permissions == copy.status().permissions)
      }
    }

    @Test("a mapping made before the copy sees what is written after", .timeLimit(.minutes(1)))
    func mapping() throws {
      try withWritable { mount, fixture in
        let path = mount.point / "plain.txt"
        try path.withFile(O_RDONLY) { reader in
          let map = try #require(mmap(nil, 4096, PROT_READ, MAP_SHARED, reader, 0))
          try #require(map != MAP_FAILED)
          defer { munmap(map, 4096) }
          let bytes = UnsafeRawBufferPointer(start: map, count: 4096)
          #expect(bytes[0] == UInt8(ascii: "m"))
          try path.overwrite(Array("X".utf8), at: 0)
          #expect(bytes[0] == UInt8(ascii: "X"))
          #expect(try ByteString.text(of: reader) == "Xain's plain\n")
        }
        try expectUntouchedMain(fixture)
      }
    }

    @Test("what is written by a shared mapping lands in the substitution", .timeLimit(.minutes(1)))
    func sharedMapping() throws {
      try withWritable { mount, fixture in
        try (mount.point / "plain.txt").withFile(O_RDWR) { file in
          let map = try #require(mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0))
          try #require(map != MAP_FAILED)
          map.storeBytes(of: UInt8(ascii: "Y"), as: UInt8.self)
          #expect(msync(map, 4096, MS_SYNC) == 0)
          munmap(map, 4096)
        }
        #expect(try (fixture.substitution / "plain.txt").readText() == "Yain's plain\n")
        try expectUntouchedMain(fixture)
      }
    }

    @Test("inode number and page cache stay the same over a copy", .timeLimit(.minutes(1)))
    func identity() throws {
      let fixture = try Fixture()
      let content = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
      for round in 0..<4 { try (fixture.main / ByteString("large\(round)")).write(content) }
      try withWritable(fixture: fixture) { mount, _ in
        var reads: [Int] = []
        // The kernel may reclaim pages now and then, but not every time.
        for round in 0..<4 {
          let path = mount.point / ByteString("large\(round)")
          #expect(try path.read() == content)
          let (before, former) = (RequestCounts(try mount.report())["READ"], try path.status())
          try path.setMode(0o600)
          try path.withFile(O_WRONLY | O_APPEND) { try ByteString.put("end", in: $0) }
          #expect(try path.read() == content + Array("end".utf8))
          #expect(try path.status().inode == former.inode)
          reads.append(RequestCounts(try mount.report())["READ"] - before)
        }
        // The page that was appended to may be read.
        #expect(reads.contains { $0 <= 1 }, "\(reads)")
      }
    }

    @Test("a file that was unlinked while open lives on", .timeLimit(.minutes(1)))
    func unlinked() throws {
      try withWritable { mount, fixture in
        for name in ["new", "replaced.txt"] as [ByteString] {
          let path = mount.point / name
          if name == "new" { try path.write("new\n") }
          try path.withFile(O_RDWR) { file in
            try path.remove()
            try ByteString.put("written after", in: file, at: 0)
            #expect(try ByteString.text(of: file).hasPrefix("written after"))
            #expect(ftruncate(file, 7) == 0 && fchmod(file, 0o600) == 0)
            #expect(try ByteString.text(of: file) == "written")
            #expect(try ByteString.status(of: file).permissions == 0o600)
          }
          #expect(!path.exists)
        }
        try expectUntouchedMain(fixture)
      }
    }

    @Test(
      "a FIFO or link that was unlinked while open lives on, also for a successor", .timeLimit(.minutes(1)),
      arguments: [false, true])
    func unlinkedSpecial(isBelow: Bool) throws {
      let fixture = try Fixture()
      let layer = isBelow ? fixture.main : fixture.substitution
      #expect(mkfifo((layer / "fifo").text, 0o640) == 0)
      try (layer / "alias").makeLink(to: "nowhere")
      try withWritable(fixture: fixture) { mount, _ in
        let (fifo, link) = (mount.point / "fifo", mount.point / "alias")
        try fifo.withFile(O_RDWR | O_NONBLOCK) { fifoFile in
          try link.withFile(OpenFlags.pathOnly.rawValue | O_NOFOLLOW) { linkFile in
            for path in [fifo, link] {
              try path.remove()
              try path.makeLink(to: "another")
            }
            for isSuccessor in [false, true] {
              if isSuccessor { kill(mount.worker, SIGKILL) }
              #expect(fchmod(fifoFile, 0o600) == 0, "\(isSuccessor): \(errno)")
              let status = try ByteString.status(of: fifoFile)
              #expect(status.kind == .fifo && status.permissions == 0o600, "\(isSuccessor)")
              #expect(try ByteString.status(of: linkFile).kind == .symbolicLink, "\(isSuccessor)")
            }
          }
        }
        #expect(try (layer / "fifo").status().permissions == 0o640 || !isBelow)
      }
    }

    @Test("a file of MAIN that was unlinked while open is written to without effect", .timeLimit(.minutes(1)))
    func unlinkedBelow() throws {
      try withWritable { mount, fixture in
        for wasRead in [true, false] {
          let name: ByteString = wasRead ? "plain.txt" : "folder/inner.txt"
          try (mount.point / name).withFile(O_RDWR) { file in
            if wasRead { _ = try ByteString.text(of: file) }
            try (mount.point / name).remove()
            try ByteString.put("after", in: file, at: 0)
            #expect(try ByteString.text(of: file) == (wasRead ? "afters plain\n" : "afters inner\n"))
            try (mount.point / name).write("another file\n")
            #expect(try ByteString.text(of: file) == (wasRead ? "afters plain\n" : "afters inner\n"))
          }
          #expect(try (fixture.substitution / name).readText() == "another file\n")
        }
        try expectUntouchedMain(fixture)
      }
    }

    @Test("a file that another is renamed over lives on", .timeLimit(.minutes(1)))
    func replaced() throws {
      try withWritable { mount, fixture in
        for name in ["plain.txt", "replaced.txt"] as [ByteString] {
          try (mount.point / name).withFile(O_RDWR) { file in
            let former = try ByteString.text(of: file)
            try (mount.point / name).replace("new\n")
            #expect(try ByteString.text(of: file) == former)
            try ByteString.put("X", in: file, at: 0)
            #expect(try ByteString.text(of: file) == "X" + former.dropFirst())
          }
          #expect(try (mount.point / name).readText() == "new\n")
        }
        try expectUntouchedMain(fixture)
      }
    }

    @Test("appends by several processes are neither lost nor torn", .timeLimit(.minutes(2)))
    func appends() throws {
      try withWritable { mount, fixture in
        try (fixture.main / "log").write("first\n")
        try mount.barrier()
        let script = """
          exec >> "$1"
          for ((i = 0; i < 500; i++)); do printf '%s %04d %s\\n' "$2" $i a-line-of-some-length-to-be-torn; done
          """
        let writers = try (0..<4).map { try Child(.shell(script, mount.point / "log", ByteString("\($0)"))) }
        for writer in writers { #expect(try writer.wait(timeout: 60).status == 0) }
        for path in [mount.point / "log", fixture.substitution / "log"] {
          let lines = try path.readText().split(separator: "\n")
          #expect(lines.first == "first" && lines.count == 2001, "\(lines.count) lines")
          for writer in 0..<4 {
            let own = lines.filter { $0.hasPrefix("\(writer) ") }.map { $0.split(separator: " ")[1] }
            #expect(own.compactMap { Int($0) } == Array(0..<500), "writer \(writer)")
          }
          #expect(lines.dropFirst().allSatisfy { $0.hasSuffix(" a-line-of-some-length-to-be-torn") })
        }
        #expect(try (fixture.main / "log").readText() == "first\n")
      }
    }

    @Test("holes, fsync and truncation", .timeLimit(.minutes(1)))
    func allocation() throws {
      try withWritable { mount, fixture in
        let path = mount.point / "plain.txt"
        try path.withFile(O_RDWR) { file in
          try ByteString.put(String(repeating: "x", count: 64 << 10), in: file, at: 0)
          #expect(fsync(file) == 0 && fdatasync(file) == 0)
          // FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
          try ByteString.allocate(file, mode: 3, at: 8192, count: 32 << 10)
          #expect(lseek(file, 0, Descriptor.seekHole) == 8192)
          #expect(lseek(file, 8192, Descriptor.seekData) == 40 << 10)
          #expect(ftruncate(file, 10000) == 0)
        }
        let expected = [UInt8](repeating: UInt8(ascii: "x"), count: 8192) + [UInt8](repeating: 0, count: 1808)
        #expect(try path.read() == expected)
        #expect(try (fixture.substitution / "plain.txt").read() == expected)
        for folder in [mount.point, mount.point / "folder", mount.point / "only"] {
          try folder.withFile(O_RDONLY | O_DIRECTORY) { #expect(fsync($0) == 0) }
        }
        try Command("sync", "-f", mount.point.text).check()
      }
    }

    @Test("a change in a layer after writing is seen", .timeLimit(.minutes(1)))
    func changeBelow() throws {
      try withWritable { mount, fixture in
        try (mount.point / "plain.txt").write("written\n")
        try (mount.point / "folder/new").write("written\n")
        try (fixture.substitution / "plain.txt").write("changed in the substitution\n")
        try (fixture.main / "folder/inner.txt").write("changed in MAIN\n")
        try (fixture.main / "folder/from-main").write("new in MAIN\n")
        try (fixture.main / "replaced.txt").write("hidden\n")
        try (fixture.substitution / "folder/new").remove()
        try mount.barrier()
        #expect(try (mount.point / "plain.txt").readText() == "changed in the substitution\n")
        #expect(try (mount.point / "folder/inner.txt").readText() == "changed in MAIN\n")
        #expect(try (mount.point / "replaced.txt").readText() == "substitution's replaced, longer\n")
        #expect(
          try (mount.point / "folder").names() == ["added.txt", "both.txt", "from-main", "inner.txt"])
        try (fixture.substitution / "plain.txt").remove()
        try mount.barrier()
        #expect(try (mount.point / "plain.txt").readText() == "main's plain\n")
        try (mount.point / "plain.txt").write("again\n")
        #expect(try (fixture.substitution / "plain.txt").readText() == "again\n")
      }
    }
  }
}
