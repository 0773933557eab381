import Glibc
import Posix
import TestSupport
import Testing

/// How the times of `-o mtime=visible` are kept, and set.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct KeptTimeTests {
    @Test(
      "times survive the worker, an upgrade and a new mount", .timeLimit(.minutes(1)),
      arguments: ["", "writable"])
    func kept(option: ByteString) throws {
      let fixture = try VisibleTimeFixture()
      if option == "writable" { fixture.setup.options.append("writable=" + (fixture.folder / "upper")) }
      let file = fixture.setup.point / "file"
      var shown: StatResult?
      func expectSame() throws {
        let status = try file.status()
        #expect((status.modified, status.changed) == (shown?.modified, shown?.changed))
      }
      try withMount(fixture.setup) { mount in
        try fixture.expectOwnTime(file, year: 2001)
        let start = TimeSpec.now
        try fixture.write("top", to: fixture.top / "file", year: 2000)
        try mount.barrier()
        try fixture.expect("top", at: file, after: start)
        shown = try file.status()
        try mount.killWorker()
        try expectSame()
        try mount.command("upgrade")
        try expectSame()
      }
      try withMount(fixture.setup) { _ in try expectSame() }
      // What changes between two mounts.
      var start = TimeSpec.now
      try (fixture.top / "file").remove()
      try withMount(fixture.setup) { _ in try fixture.expect("main", at: file, after: start) }
      start = .now
      try fixture.write("old", to: fixture.main / "file", year: 1999)
      try withMount(fixture.setup) { _ in try fixture.expect("old", at: file, after: start) }
    }

    @Test("a time that a program sets is shown", .timeLimit(.minutes(1)))
    func set() throws {
      let fixture = try VisibleTimeFixture()
      let upper = try fixture.folder.folder("upper")
      fixture.setup.options.append("writable=" + upper)
      try withMount(fixture.setup) { mount in
        let file = mount.point / "file"
        try fixture.expectOwnTime(file, year: 2001)
        let start = TimeSpec.now
        try fixture.write("top", to: fixture.top / "file", year: 2000)
        try mount.barrier()
        try fixture.expect("top", at: file, after: start)
        let before = try file.status().modified
        // A copy in the upper layer.
        try file.setMode(0o600)
        #expect(try file.status().modified == before)
        try file.setModified(VisibleTimeFixture.time(1995))
        try fixture.expectOwnTime(file, year: 1995)
        try file.rename(to: mount.point / "renamed")
        try fixture.expectOwnTime(mount.point / "renamed", year: 1995)
        try mount.killWorker()
        try fixture.expectOwnTime(mount.point / "renamed", year: 1995)
        // Over a file that shows a later time.
        try file.write("new")
        try (mount.point / "renamed").rename(to: file)
        try fixture.expectOwnTime(file, year: 1995)
        let archive = fixture.folder / "a.tar"
        try Command(["tar", "-C", mount.point, "-cf", archive, "file"]).check()
        try file.remove()
        try Command(["tar", "-C", mount.point, "-xf", archive]).check()
        #expect(try file.status().modified.seconds == VisibleTimeFixture.time(1995).seconds)
        let again = TimeSpec.now
        try file.write("more")
        #expect(try file.status().modified.seconds >= again.seconds - 1)
      }
      try withMount(fixture.setup) { mount in
        let file = mount.point / "file"
        try Command(["touch", "-d", "1994-01-02 03:04:05.678901234 UTC", file]).check()
        #expect(try file.status().modified == TimeSpec(seconds: 757_479_845, nanoseconds: 678_901_234))
        let start = TimeSpec.now
        try (upper / "file").remove()
        try mount.barrier()
        try fixture.expect("top", at: file, after: start)
      }
    }

    @Test("a copy and a rename keep the time, and a rename takes no name back", .timeLimit(.minutes(1)))
    func own() throws {
      let fixture = try VisibleTimeFixture()
      fixture.setup.options.append("writable=" + (fixture.folder / "upper"))
      try fixture.write("second", to: fixture.main / "second", year: 2002)
      try withMount(fixture.setup) { mount in
        let (file, second) = (mount.point / "file", mount.point / "second")
        try fixture.expectOwnTime(file, year: 2001)
        try file.setMode(0o600)
        try fixture.expectOwnTime(file, year: 2001)
        try fixture.expectOwnTime(second, year: 2002)
        try file.rename(to: mount.point / "third")
        try fixture.expectOwnTime(mount.point / "third", year: 2001)
        try (mount.point / "fourth").makeHardLink(of: mount.point / "third")
        try fixture.expectOwnTime(mount.point / "fourth", year: 2001)
        let start = TimeSpec.now
        try (mount.point / "third").rename(to: second)
        try mount.barrier()
        try fixture.expect("main", at: second, after: start)
      }
    }

    @Test("a copy keeps the time for the next mount, too", .timeLimit(.minutes(1)))
    func copies() throws {
      let fixture = try VisibleTimeFixture()
      fixture.setup.options.append("writable=" + (fixture.folder / "upper"))
      try fixture.write("second", to: fixture.main / "second", year: 2002)
      try withMount(fixture.setup) { mount in
        try fixture.expectOwnTime(mount.point / "file", year: 2001)
        try fixture.expectOwnTime(mount.point / "second", year: 2002)
        try (mount.point / "file").setMode(0o600)
        try (mount.point / "second").rename(to: mount.point / "third")
      }
      try withMount(fixture.setup) { mount in
        try fixture.expectOwnTime(mount.point / "file", year: 2001)
        try fixture.expectOwnTime(mount.point / "third", year: 2002)
      }
    }

    @Test("a link that takes a removed file's name does not take its time back", .timeLimit(.minutes(1)))
    func links() throws {
      let fixture = try VisibleTimeFixture()
      fixture.setup.options.append("writable=" + (fixture.folder / "upper"))
      try fixture.write("former", to: fixture.main / "former", year: 2001)
      try withMount(fixture.setup) { mount in
        let (file, former) = (mount.point / "file", mount.point / "former")
        try fixture.expectOwnTime(file, year: 2001)
        try fixture.expectOwnTime(former, year: 2001)
        try file.write("new")
        let shown = try file.status().modified
        try file.remove()
        try file.makeHardLink(of: former)
        #expect(try file.readText() == "former")
        #expect(try file.status().modified > shown)
      }
    }

    @Test("the mount may cover its record, and replaces no other file", .timeLimit(.minutes(1)))
    func covered() throws {
      let fixture = try VisibleTimeFixture()
      let folder = fixture.main
      fixture.setup.point = folder
      fixture.setup.options = ["mtime=visible:" + folder + "/times"]
      try (folder / "times.new").write("another's")
      try withMount(fixture.setup) { mount in
        let file = mount.point / "file"
        try fixture.expectOwnTime(file, year: 2001)
        try mount.killWorker()
        try fixture.expectOwnTime(file, year: 2001)
        try mount.command("upgrade")
        try mount.command("layers", "set", "")
        try mount.killWorker()
        try fixture.expectOwnTime(file, year: 2001)
        #expect(!mount.process.errorText.contains("until the mount ends"), "\(mount.process.errorText)")
      }
      // One that was cut is replaced.
      let record = folder / "times"
      let size = try record.status().size
      #expect(size > 48)
      try record.setSize(Int(size) - 7)
      try withMount(fixture.setup) { mount in try fixture.expectOwnTime(mount.point / "file", year: 2001) }
      #expect(try (folder / "times.new").readText() == "another's")
      #expect(try folder.names() == ["file", "times", "times.new"])
    }

    @Test("a hostile record is ignored, with a message", .timeLimit(.minutes(1)))
    func hostile() throws {
      let fixture = try VisibleTimeFixture()
      let record = fixture.folder / "my, record"
      fixture.setup.options = ["mtime=visible:" + MountSetup.escaped(record)]
      for content in ["root:x:0:0:", String(repeating: "x", count: 5000)] {
        try record.write(content)
        let mount = try Mount(fixture.setup)
        try mount.unmount()
        #expect(
          mount.process.errorText.contains(
            "kept until the mount ends only: \(record): it is no record of times"))
        #expect(try record.readText() == content)
      }
      try record.remove()
      try withMount(fixture.setup) { mount in
        _ = try (mount.point / "file").status()
        // Another mount of the same record.
        var second = fixture.setup
        second.point = try fixture.folder.folder("second")
        let other = try Mount(second)
        #expect(try (other.point / "file").readText() == "main")
        try other.unmount()
        #expect(other.process.errorText.contains("another mount uses it"))
      }
      #expect(try record.status().size > 48)
      #expect(!fixture.state.exists)
    }

    @Test(
      "what the option does not take", .timeLimit(.minutes(1)),
      arguments: ["", "=", "=now", "=visible:a", "=visible:/a/"])
    func arguments(value: ByteString) throws {
      let fixture = try VisibleTimeFixture()
      fixture.setup.options = ["mtime" + value]
      let outcome = try fixture.setup.command(foreground: true).run()
      #expect(
        outcome.status == 2 && outcome.errorText.contains("expected mtime=file"), "\(outcome.errorText)")
    }
  }
}
