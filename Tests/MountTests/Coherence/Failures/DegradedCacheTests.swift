import Glibc
import Posix
import TestSupport
import Testing

/// Layers that cannot be watched are cached for a second only, and the status reports it.
extension MountTests.ExclusiveTests {
  @Suite struct DegradedCacheTests {
    @Test("the limit of inotify watches is reached and then raised", .timeLimit(.minutes(2)))
    func watchLimit() throws {
      let fixture = try Fixture()
      for number in 0..<120 {
        let folder = fixture.main / ByteString("many/folder-\(number)")
        try folder.makeDirectories()
        try (folder / "file").write("before\n")
      }
      let limit = try KernelLimit.watches(20)
      defer { limit.restore() }
      try withMount(fixture.setup) { mount in
        try mount.warmCaches()
        try expectUncached(mount, of: fixture.main)
        for number in 0..<120 {
          let folder = fixture.main / ByteString("many/folder-\(number)")
          try (folder / "file").write("after, and longer\n")
          try (folder / "new").write("new\n")
        }
        try expectEventually {
          for number in 0..<120 {
            let folder = mount.point / ByteString("many/folder-\(number)")
            guard try (folder / "file").readText() == "after, and longer\n", (folder / "new").exists,
              try folder.names() == ["file", "new"]
            else { return false }
          }
          return true
        }
        limit.restore()
        try expectRecovery(mount)
        try expectNoRequests(mount)
      }
    }

    @Test("the inotify queue overflows", .timeLimit(.minutes(2)))
    func overflow() throws {
      let fixture = try Fixture()
      let limit = try KernelLimit.queuedEvents(16)
      defer { limit.restore() }
      for number in 0..<200 { try (fixture.main / "folder" / ByteString("file-\(number)")).write("before\n") }
      try withMount(fixture.setup) { mount in
        try mount.warmCaches()
        // A stopped daemon does not read its events.
        mount.signalWorker(SIGSTOP)
        for number in 0..<200 {
          let file = fixture.main / "folder" / ByteString("file-\(number)")
          if number % 3 == 0 { try file.remove() } else { try file.write("after, and longer\n") }
        }
        try (fixture.substitution / "only/deep").makeDirectories()
        try (fixture.substitution / "only/deep/new").write("new\n")
        mount.signalWorker(SIGCONT)
        try mount.barrier()
        try expectEventually {
          for number in 0..<200 {
            let file = mount.point / "folder" / ByteString("file-\(number)")
            if number % 3 == 0 {
              if file.exists { return false }
            } else if try file.readText() != "after, and longer\n" {
              return false
            }
          }
          return try (mount.point / "only/deep").names() == ["file.txt", "new"]
        }
        try expectRecovery(mount)
        try expectNoRequests(mount)
      }
    }

    @Test("a layer is itself a FUSE file system", .timeLimit(.minutes(1)))
    func fuseLayer() throws {
      let fixture = try Fixture()
      let inner = try fixture.folder.folder("inner")
      let backing = try fixture.folder.folder("backing")
      try (backing / "remote").makeDirectory()
      try (backing / "remote/file").write("before\n")
      var innerSetup = MountSetup(main: backing, point: inner)
      innerSetup.options = ["cache=none"]
      try withMount(innerSetup) { innerMount in
        let setup = MountSetup(main: fixture.main, point: fixture.point, substitutions: [innerMount.point])
        try withMount(setup) { mount in
          #expect(try (mount.point / "remote/file").readText() == "before\n")
          try mount.warmCaches()
          try expectUncached(mount, of: innerMount.point)
          for round in 0..<4 {
            let text = String(repeating: "after \(round)\n", count: round + 2)
            try (backing / "remote/file").write(text)
            try (backing / "remote" / ByteString("new-\(round)")).write(text)
            try expectEventually {
              try (mount.point / "remote/file").readText() == text
                && (mount.point / "remote" / ByteString("new-\(round)")).exists
                && (mount.point / "remote").names().count == round + 2
            }
            // The other layer stays coherent.
            try (fixture.main / "folder/inner.txt").write(text)
            try mount.barrier()
            try expectEventually { try (mount.point / "folder/inner.txt").readText() == text }
          }
        }
      }
    }

    @Test("an inaccessible folder with a deep tree blocks nothing", .timeLimit(.minutes(1)))
    func inaccessibleFolder() throws {
      let fixture = try Fixture()
      let deep = ByteString((0..<40).map { _ in "d" }.joined(separator: "/"))
      try (fixture.main / deep).makeDirectories()
      try withOpenDevice {
        try withMount(try MountTests.UnprivilegedTests().userSetup(fixture)) { mount in
          let walk = Command(["find", mount.point / "d"]).asUser(MountTests.UnprivilegedTests.nobody)
          #expect(try walk.check(timeout: 20).outputText.split(separator: "\n").count == 40)
          try (fixture.main / "d").setMode(0)
          for name in ["sync", "invalidate", "sync"] as [ByteString] {
            try Command([fixture.folder / "bundlefs", name, mount.point]).asUser(
              MountTests.UnprivilegedTests.nobody
            )
            .check(timeout: 10)
          }
          _ = try walk.run(timeout: 10)
          try (fixture.main / "d").setMode(0o755)
          try expectEventually { try walk.run(timeout: 10).outputText.split(separator: "\n").count == 40 }
        }
      }
    }

    @Test("an unprivileged daemon notices mounts inside a layer", .timeLimit(.minutes(1)))
    func innerMount() throws {
      let fixture = try Fixture()
      let inner = fixture.main / "only"
      try withOpenDevice {
        try withMount(try MountTests.UnprivilegedTests().userSetup(fixture)) { mount in
          let seen = {
            try Command(["ls", mount.point / "only"]).asUser(MountTests.UnprivilegedTests.nobody).check()
              .outputText
          }
          let sync = {
            try Command([fixture.folder / "bundlefs", "sync", mount.point]).asUser(
              MountTests.UnprivilegedTests.nobody
            )
            .check(
              timeout: 20)
          }
          #expect(try seen() == "deep\n")
          try Command("mount", "-t", "tmpfs", "tmpfs", inner.text).check()
          do {
            defer { _ = try? Command("umount", "-l", inner.text).run() }
            try (inner / "inside").write("")
            _ = try sync()
            #expect(try seen() == "inside\n")
            try (inner / "more").write("")
            _ = try sync()
            #expect(try seen() == "inside\nmore\n")
          }
          _ = try sync()
          #expect(try seen() == "deep\n")
        }
      }
    }
  }
}
