import Glibc
import Posix
import TestSupport
import Testing

/// The `announce` option, its part of `status`, and changes that cannot be announced.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct AnnounceOptionTests {
    @Test("announce=off announces nothing", .timeLimit(.minutes(1)))
    func off() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("announce=off")) { mount in
        let watcher = try MountWatcher(mount.point)
        try (fixture.main / "plain.txt").write("other")
        try (fixture.main / "new").write("new")
        try (fixture.main / "link").remove()
        try mount.barrier()
        Clock.sleep(0.3)
        try watcher.readEvents()
        // The barrier writes to the control file, in the mount itself.
        #expect(watcher.events.filter { $0.name != ".routes" } == [])
        let announce = try mount.report().announce
        #expect(!announce.on && announce.reason == nil && announce.events == 0)
        #expect(try mount.command("status").outputText.contains("announced to watchers: nothing\n"))
      }
    }

    @Test(
      "where announcing is impossible, the status gives the reason", .timeLimit(.minutes(1)),
      arguments: [("ro", "read-only"), ("cache=1", "cache=1"), ("cache=none", "cache=none")])
    func unavailable(option: String, reason: String) throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("announce=on", ByteString(option))) { mount in
        try (fixture.main / "plain.txt").write("other")
        let announce = try mount.report().announce
        #expect(!announce.on && announce.reason?.contains(reason) == true, "\(announce)")
        #expect(try mount.command("status").outputText.contains(reason))
        #expect(try mount.point.names().contains("plain.txt"))
      }
    }

    @Test("the status counts announced and dropped events", .timeLimit(.minutes(1)))
    func counts() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup("announce=on")) { mount in
        let watcher = try MountWatcher(mount.point)
        try (fixture.main / "link").remove()
        #expect(try watcher.receives(.deleted, "link"))
        let isCounted = try eventually(within: 5) { try mount.report().announce.events == 1 }
        #expect(isCounted)
        // A read-only remount refuses the synthetic changes too.
        try Command("mount", "-i", "-o", "remount,ro", mount.point.text).check()
        try (fixture.main / "plain.txt").write("other")
        let isDropped = try eventually(within: 5) { try mount.report().announce.dropped > 0 }
        #expect(isDropped)
        #expect(try mount.report().announce.lastDrop == "Read-only file system")
        #expect(try mount.command("status").outputText.contains("(the last: Read-only file system)"))
        #expect(try (mount.point / "plain.txt").readText() == "other")
      }
    }

    @Test("an unprivileged daemon announces changes to files of its user", .timeLimit(.minutes(1)))
    func user() throws {
      let fixture = try Fixture()
      try (fixture.main / "foreign").write("root's")
      var setup = try UnprivilegedTests().userSetup(fixture)
      try (fixture.main / "foreign").setOwner(0, group: 0)
      setup.options = ["announce=on"]
      let program = try #require(setup.binary)
      try withOpenDevice {
        try withMount(setup) { mount in try expectOwnChanges(mount, fixture, program) }
      }
    }

    private func expectOwnChanges(_ mount: Mount, _ fixture: Fixture, _ program: ByteString) throws {
      // Without allow_other only the mounting user has access.
      let listener = try Child(
        Command(["/usr/bin/python3", "-c", Self.listener, mount.point]).asUser(UnprivilegedTests.nobody))
      defer { try? listener.kill() }
      let isListening = eventually(within: 10) { listener.outputText.contains("listening") }
      #expect(isListening, "\(listener.errorText)")
      try (fixture.main / "plain.txt").write("other")
      try (fixture.main / "new").write("new")
      try (fixture.main / "link").remove()
      for line in ["plain.txt 8", "new 100", "link 200"] {
        #expect(eventually(within: 5) { listener.outputText.contains("\(line)\n") }, "\(line)")
      }
      // Only the owner may set the times of another user's file.
      try (fixture.main / "foreign").write("changed")
      let status = Command([program, "status", mount.point]).asUser(UnprivilegedTests.nobody)
      let reason = "(the last: Operation not permitted)"
      let isDropped = try eventually(within: 5) { try status.check().outputText.contains(reason) }
      #expect(isDropped)
    }

    /// Prints the names and masks of a directory's events.
    static let listener: ByteString = """
      import ctypes, os, struct, sys
      libc = ctypes.CDLL(None)
      queue = libc.inotify_init()
      libc.inotify_add_watch(queue, os.fsencode(sys.argv[1]), 0x38e)
      print('listening', flush=True)
      while True:
          events = os.read(queue, 65536)
          while events:
              mask, length = struct.unpack('=4xI4xI', events[:16])
              name = events[16:16 + length].rstrip(b'\\0').decode()
              print(name, format(mask, 'x'), flush=True)
              events = events[16 + length:]
      """

    @Test("the mount can be unmounted between announcements", .timeLimit(.minutes(2)))
    func unmountBetweenAnnouncements() throws {
      let fixture = try Fixture()
      let setup = fixture.setup("announce=on")
      for round in 0..<20 {
        let mount = try Mount(setup)
        defer { mount.abandon() }
        let watcher = try MountWatcher(mount.point)
        try (fixture.main / "plain.txt").write("\(round)")
        if round % 2 == 0 { #expect(try watcher.receives(.closeWrite, "plain.txt")) }
        // An inotify watch does not keep a mount busy.
        try mount.unmount()
      }
    }

    @Test("a blocked announcement blocks nothing else", .timeLimit(.minutes(2)))
    func blockedAnnouncement() throws {
      // The path to the mount leads through another mount, whose daemon is stopped.
      let (outer, inner) = (try Fixture(), try Fixture())
      var outerSetup = outer.setup
      outerSetup.options = ["cache=none"]
      try (outer.main / "point").makeDirectory()
      try withMount(outerSetup) { outerMount in
        var setup = inner.setup
        setup.point = outerMount.point / "point"
        setup.options = ["announce=on"]
        let mount = try Mount(setup)
        defer { mount.abandon() }
        try mount.point.withOpen(O_RDONLY | O_DIRECTORY) { root in
          // Paths below /proc/self/fd avoid the outer mount.
          let seen = ByteString("/proc/self/fd/\(root)/plain.txt")
          let control = ByteString("/proc/self/fd/\(root)/.routes")
          _ = try seen.read()
          let watcher = try MountWatcher(mount.point)
          outerMount.signalWorker(SIGSTOP)
          defer { outerMount.signalWorker(SIGCONT) }
          for round in 0..<50 {
            try (inner.main / "plain.txt").write("round \(round)\n")
            try control.overwrite(Array("bundlefs:///sync\n".utf8), at: 0)
            #expect(try seen.readText() == "round \(round)\n")
          }
          try watcher.readEvents()
          #expect(watcher.masks("plain.txt") == [], "the announcement was not blocked")
          outerMount.signalWorker(SIGCONT)
          #expect(try watcher.receives(.closeWrite, "plain.txt"))
        }
        try mount.unmount()
      }
    }
  }
}
