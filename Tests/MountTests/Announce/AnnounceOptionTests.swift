import Glibc
import Posix
import TestSupport
import Testing

/// The option, what `status` tells of it, and what happens when a change cannot be announced.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct AnnounceOptionTests {
    @Test("switched off, nothing is announced", .timeLimit(.minutes(1)))
    func off() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["announce=off"]
      try withMount(setup) { mount in
        let watcher = try MountWatcher(mount.point)
        try (fixture.main / "plain.txt").write("other")
        try (fixture.main / "new").write("new")
        try (fixture.main / "link").remove()
        try mount.barrier()
        Clock.sleep(0.3)
        try watcher.hear()
        // The barrier is written through the mount itself.
        #expect(watcher.events.filter { $0.name != ".routes" } == [])
        let announce = try mount.report().announce
        #expect(!announce.on && announce.reason == nil && announce.events == 0)
        #expect(try mount.command("status").outputText.contains("announced to watchers: nothing\n"))
      }
    }

    @Test(
      "where it cannot be, the status says why", .timeLimit(.minutes(1)),
      arguments: [("ro", "read-only"), ("cache=1", "cache=1"), ("cache=none", "cache=none")])
    func impossible(option: String, reason: String) throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["announce=on", ByteString(option)]
      try withMount(setup) { mount in
        try (fixture.main / "plain.txt").write("other")
        let announce = try mount.report().announce
        #expect(!announce.on && announce.reason?.contains(reason) == true, "\(announce)")
        #expect(try mount.command("status").outputText.contains(reason))
        #expect(try mount.point.names().contains("plain.txt"))
      }
    }

    @Test("what it counts", .timeLimit(.minutes(1)))
    func counts() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["announce=on"]
      try withMount(setup) { mount in
        let watcher = try MountWatcher(mount.point)
        try (fixture.main / "link").remove()
        #expect(try watcher.hears(.deleted, "link"))
        let isCounted = try eventually(within: 5) { try mount.report().announce.events == 1 }
        #expect(isCounted)
        // Remounted for reading only, it cannot be changed for show either.
        try Command("mount", "-i", "-o", "remount,ro", mount.point.text).check()
        try (fixture.main / "plain.txt").write("other")
        let isDropped = try eventually(within: 5) { try mount.report().announce.dropped > 0 }
        #expect(isDropped)
        #expect(try mount.report().announce.lastDrop == "Read-only file system")
        #expect(try mount.command("status").outputText.contains("(the last: Read-only file system)"))
        #expect(try (mount.point / "plain.txt").readText() == "other")
      }
    }

    @Test("a daemon without privileges announces what its user may change", .timeLimit(.minutes(1)))
    func user() throws {
      let fixture = try Fixture()
      try (fixture.main / "foreign").write("root's")
      var setup = try UserTests().userSetup(fixture)
      try (fixture.main / "foreign").setOwner(0, group: 0)
      setup.options = ["announce=on"]
      let program = try #require(setup.binary)
      try withOpenDevice {
        try withMount(setup) { mount in try expectOwnChanges(mount, fixture, program) }
      }
    }

    private func expectOwnChanges(_ mount: Mount, _ fixture: Fixture, _ program: ByteString) throws {
      // Only who mounted may look.
      let listener = try Child(
        Command(["/usr/bin/python3", "-c", Self.listener, mount.point]).asUser(UserTests.nobody))
      defer { try? listener.kill() }
      let listens = eventually(within: 10) { listener.outputText.contains("listening") }
      #expect(listens, "\(listener.errorText)")
      try (fixture.main / "plain.txt").write("other")
      try (fixture.main / "new").write("new")
      try (fixture.main / "link").remove()
      for line in ["plain.txt 8", "new 100", "link 200"] {
        #expect(eventually(within: 5) { listener.outputText.contains("\(line)\n") }, "\(line)")
      }
      // Of what is another user's only the owner could set the times.
      try (fixture.main / "foreign").write("changed")
      let status = Command([program, "status", mount.point]).asUser(UserTests.nobody)
      let reason = "(the last: Operation not permitted)"
      let isDropped = try eventually(within: 5) { try status.check().outputText.contains(reason) }
      #expect(isDropped)
    }

    /// Prints names and masks of a directory's events.
    private static let listener: ByteString = """
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

    @Test("the mount can be unmounted between any two changes", .timeLimit(.minutes(2)))
    func busy() throws {
      let fixture = try Fixture()
      var setup = fixture.setup
      setup.options = ["announce=on"]
      for round in 0..<20 {
        let mount = try Mount(setup)
        defer { mount.abandon() }
        let watcher = try MountWatcher(mount.point)
        try (fixture.main / "plain.txt").write("\(round)")
        if round % 2 == 0 { #expect(try watcher.hears(.closeWrite, "plain.txt")) }
        // Nothing of the watcher's keeps it: a watch is no use of a mount.
        try mount.unmount()
      }
    }

    @Test("while an announcement stands still, everything else goes on", .timeLimit(.minutes(2)))
    func standstill() throws {
      // The way to the mount leads through another one, whose daemon is stopped.
      let (outer, inner) = (try Fixture(), try Fixture())
      var outerSetup = outer.setup
      outerSetup.options = ["cache=none"]
      try (outer.main / "point").makeDirectory()
      try withMount(outerSetup) { way in
        var setup = inner.setup
        setup.point = way.point / "point"
        setup.options = ["announce=on"]
        let mount = try Mount(setup)
        defer { mount.abandon() }
        try mount.point.withOpen(O_RDONLY | O_DIRECTORY) { root in
          // What is opened goes on from here, without the way.
          let seen = ByteString("/proc/self/fd/\(root)/plain.txt")
          let control = ByteString("/proc/self/fd/\(root)/.routes")
          _ = try seen.read()
          let watcher = try MountWatcher(mount.point)
          way.process.signal(SIGSTOP)
          defer { way.process.signal(SIGCONT) }
          for round in 0..<50 {
            try (inner.main / "plain.txt").write("round \(round)\n")
            try control.overwrite(Array("bundlefs:///sync\n".utf8), at: 0)
            #expect(try seen.readText() == "round \(round)\n")
          }
          try watcher.hear()
          #expect(watcher.masks("plain.txt") == [], "it did not stand still")
          way.process.signal(SIGCONT)
          #expect(try watcher.hears(.closeWrite, "plain.txt"))
        }
        try mount.unmount()
      }
    }
  }
}
