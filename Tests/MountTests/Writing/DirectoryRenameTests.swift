import Glibc
import Posix
import TestSupport
import Testing

/// Directories of layers below are renamed by copying what the mount shows in them.
extension MountTests {
  @Suite struct DirectoryRenameTests {
    /// What the work folder has, except for the device that whiteouts are links of.
    private func leftOvers(_ fixture: Fixture) throws -> [ByteString] {
      let work = fixture.substitution / ".wh..wh.bundlefs-work"
      return work.exists ? try work.names().filter { $0.text.contains("-") } : []
    }

    @Test("a merged tree keeps all that it shows", .timeLimit(.minutes(1)))
    func merged() throws {
      let fixture = try Fixture()
      let source = fixture.main / "folder/sub"
      try source.makeDirectory(mode: 0o750)
      try (source / "empty").makeDirectory()
      try (source / "file").write("in MAIN\n")
      try (source / "file").setOwner(1000, group: 100)
      try (source / "file").setAttribute("user.comment", Array("mine".utf8))
      try (source / "file").setModified(TimeSpec(seconds: 1_234_567_890, nanoseconds: 5))
      try (source / "link").makeLink(to: "nowhere")
      try (source / "pipe").makeNode(mode: FileKind.fifo.rawValue | 0o640)
      try (source / "gone").write("x")
      try source.setModified(TimeSpec(seconds: 1_000_000_000, nanoseconds: 7))
      let before = try (source / "file").status()
      try withWritable(fixture: fixture) { mount, fixture in
        try (mount.point / "folder/sub/gone").remove()
        try (mount.point / "folder").rename(to: mount.point / "moved")
        let moved = mount.point / "moved"
        for root in [moved, fixture.substitution / "moved"] {
          #expect(try (root / "both.txt").read() == (fixture.substitution / "moved/both.txt").read())
          let after = try (root / "sub/file").status()
          #expect(after.owner == 1000 && after.group == 100 && after.modified == before.modified)
          #expect(try (root / "sub/file").readText() == "in MAIN\n")
          #expect(try (root / "sub/file").attribute("user.comment") == Array("mine".utf8))
          #expect(try (root / "sub/pipe").status().kind == .fifo)
          #expect(try (root / "sub/empty").names() == [])
        }
        #expect(try (moved / "sub").names() == ["empty", "file", "link", "pipe"])
        #expect(try (moved / "sub").status().permissions == 0o750)
        #expect(!(mount.point / "folder").exists && (fixture.substitution / "folder").isWhiteout)
        #expect(try leftOvers(fixture) == [])
        try expectErrno(.noSuchFileOrDirectory) { _ = try (mount.point / "folder/sub/file").status() }
        // The old name is free, and shows nothing of before.
        try (mount.point / "folder").makeDirectory()
        #expect(try (mount.point / "folder").names() == [])
      }
    }

    @Test("what programs have open stays theirs", .timeLimit(.minutes(1)))
    func openFiles() throws {
      try withWritable { mount, fixture in
        let file = mount.point / "only/deep/file.txt"
        try file.withFile(O_RDWR) { descriptor in
          var buffer = [UInt8](repeating: 0, count: 2)
          #expect(try ByteString.readPart(&buffer, of: descriptor, at: 0) == 2)
          try (mount.point / "only").rename(to: mount.point / "other")
          #expect(try ByteString.readPart(&buffer, of: descriptor, at: 2) == 2)
          try ByteString.put("DEEP", in: descriptor, at: 0)
          #expect(
            try ByteString.status(of: descriptor).inode
              == (mount.point / "other/deep/file.txt").status().inode)
        }
        #expect(try (mount.point / "other/deep/file.txt").readText() == "DEEP\n")
        #expect(try (fixture.substitution / "other/deep/file.txt").readText() == "DEEP\n")
        try expectUntouchedMain(fixture)
      }
    }

    @Test("a process that stands in it stays there", .timeLimit(.minutes(1)))
    func workingDirectory() throws {
      try withWritable { mount, fixture in
        let script =
          "cd only/deep && mv ../../only ../../other && pwd -P && cat file.txt && echo new > new.txt"
        let shell = try Command("sh", "-c", "cd \(mount.point.text) && \(script)").check()
        #expect(shell.outputText.hasSuffix("/other/deep\ndeep\n"), "\(shell.outputText)")
        #expect(try (fixture.substitution / "other/deep").names() == ["file.txt", "new.txt"])
      }
    }

    @Test(
      "an empty target is replaced, others are not, and nothing is copied for them", .timeLimit(.minutes(1)))
    func targets() throws {
      let fixture = try Fixture()
      for name in ["empty", "full"] as [ByteString] { try (fixture.main / name).makeDirectory() }
      try (fixture.main / "full/x").write("x")
      try withWritable(fixture: fixture) { mount, fixture in
        let only = mount.point / "only"
        try expectErrno(.directoryNotEmpty) { try only.rename(to: mount.point / "full") }
        try expectErrno(.notDirectory) { try only.rename(to: mount.point / "plain.txt") }
        try expectErrno(.fileExists) { try only.rename(to: mount.point / "empty", flags: 1) }
        try expectErrno(.invalidArgument) { try only.rename(to: only / "deep/inside") }
        #expect(!(fixture.substitution / "only").exists)
        try only.rename(to: mount.point / "empty")
        #expect(try (mount.point / "empty/deep/file.txt").readText() == "deep\n")
        try (mount.point / "empty").rename(to: mount.point / "full", flags: 2)
        #expect(try (mount.point / "full").names() == ["deep"] && (mount.point / "empty").names() == ["x"])
        try (mount.point / "new").makeDirectory()
        try (mount.point / "empty").rename(to: mount.point / "new")
        #expect(try (mount.point / "new").names() == ["x"])
      }
    }

    @Test("beyond rename_copy it is EXDEV, before anything is copied", .timeLimit(.minutes(1)))
    func limit() throws {
      let fixture = try Fixture()
      try (fixture.main / "only/large").write([UInt8](repeating: 1, count: 10_000))
      for limit in ["0", "20000"] {
        try withMount(fixture.setup("writable", ByteString("rename_copy=\(limit)"))) { mount throws in
          try expectErrno(.crossDeviceLink) { try (mount.point / "only").rename(to: mount.point / "other") }
          #expect(!(fixture.substitution / "only").exists)
        }
      }
      try withMount(fixture.setup("writable", "rename_copy=64K")) { mount throws in
        try (mount.point / "only").rename(to: mount.point / "other")
        #expect(try (mount.point / "other/large").status().size == 10_000)
      }
    }

    @Test("an immutable file below refuses it", .timeLimit(.minutes(1)))
    func immutable() throws {
      let fixture = try Fixture()
      let file = (fixture.main / "only/deep/file.txt").text
      guard try Command("chattr", "+i", file).run(timeout: 30).status == 0 else { return }
      defer { _ = try? Command("chattr", "-i", file).check() }
      try withWritable(fixture: fixture) { mount, fixture in
        try expectErrno(.notPermitted) { try (mount.point / "only").rename(to: mount.point / "other") }
        #expect(!(fixture.substitution / "only").exists)
      }
    }

    @Test(
      "without space nothing is left of it", .timeLimit(.minutes(1)),
      .enabled(if: TmpfsSupport.keepsUserAttributes))
    func noSpace() throws {
      let fixture = try Fixture()
      try Command("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", fixture.substitution.text).check()
      for name in ["a", "b", "c"] as [ByteString] {
        try (fixture.main / "only" / name).write([UInt8](repeating: 7, count: 1 << 20))
      }
      try withWritable(fixture: fixture) { mount, fixture in
        try expectErrno(.noSpace) { try (mount.point / "only").rename(to: mount.point / "other") }
        #expect(!(fixture.substitution / "only").exists)
        #expect(try leftOvers(fixture) == [])
        #expect(try (mount.point / "only").names() == ["a", "b", "c", "deep"])
        try (mount.point / "next").write([UInt8](repeating: 2, count: 1 << 20))
      }
    }

    @Test("hidden names of layers below stay there", .timeLimit(.minutes(1)))
    func hidden() throws {
      let fixture = try Fixture()
      try (fixture.main / "only/x.bak").write("below")
      try (fixture.substitution / "only").makeDirectory()
      try (fixture.substitution / "only/y.bak").write("upper")
      try withMount(fixture.setup("writable", "hide=*.bak")) { mount throws in
        try (mount.point / "only").rename(to: mount.point / "other")
        #expect(try (mount.point / "other").names() == ["deep"])
      }
      #expect(try (fixture.substitution / "other").names() == ["deep", "y.bak"])
      #expect((fixture.main / "only/x.bak").exists)
    }
  }
}
