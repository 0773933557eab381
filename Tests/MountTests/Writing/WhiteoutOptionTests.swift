import Glibc
import Posix
import TestSupport
import Testing

/// The formats of whiteouts in a writable mount.
extension MountTests {
  @Suite struct WhiteoutOptionTests {
    @Test("a deletion is seen by git where whiteouts are markers", .timeLimit(.minutes(1)))
    func git() throws {
      let fixture = try Fixture()
      let git = Command.shell(
        "cd \"$1\" && git init -q . && git add -A && git -c user.name=x -c user.email=x commit -qm x",
        fixture.substitution)
      try git.check()
      try withWritable("whiteouts=markers", fixture: fixture) { mount, fixture in
        try (mount.point / "plain.txt").remove()
        #expect(!(mount.point / "plain.txt").exists)
        #expect((fixture.substitution / ".wh.plain.txt").exists)
        let status = try Command.shell("git -C \"$1\" status --porcelain", fixture.substitution).check()
        #expect(status.outputText == "?? .wh.plain.txt\n")
        try (mount.point / "plain.txt").write("new\n")
        #expect(!(fixture.substitution / ".wh.plain.txt").exists)
        // The format outlives the process.
        let former = mount.worker
        kill(former, SIGKILL)
        #expect(eventually(within: 20) { mount.worker != former && mount.worker != mount.process.pid })
        try (mount.point / "plain.txt").remove()
        #expect((fixture.substitution / ".wh.plain.txt").exists)
        try expectUntouchedMain(fixture)
      }
    }

    @Test("devices are used beside markers if they are wanted", .timeLimit(.minutes(1)))
    func devices() throws {
      let fixture = try Fixture()
      try (fixture.substitution / ".wh.seed").write("")
      try withWritable("whiteouts=devices", fixture: fixture) { mount, fixture in
        try (mount.point / "plain.txt").remove()
        #expect((fixture.substitution / "plain.txt").isWhiteout)
        try Command([Binary.underTest(), "upgrade", mount.point]).check()
        try (mount.point / "only/deep/file.txt").remove()
        #expect((fixture.substitution / "only/deep/file.txt").isWhiteout)
      }
      var setup = fixture.setup
      setup.options = ["writable", "whiteouts=both"]
      let outcome = try setup.command(foreground: true).run()
      #expect(outcome.status == 2 && outcome.errorText.contains("whiteouts=markers"), "\(outcome.errorText)")
    }

    @Test(
      "no marker stays beside an entry that took its name, also if the worker is killed in between",
      .timeLimit(.minutes(2)))
    func killed() throws {
      let fixture = try Fixture()
      try (fixture.substitution / ".wh.seed").write("")
      try withWritable(fixture: fixture) { mount, fixture in
        let script = """
          set -e; cd "$1"
          for round in $(seq 150); do
            rm plain.txt; test ! -e plain.txt; echo "$round" > plain.txt
            mv plain.txt away; test ! -e plain.txt; mv away plain.txt
            rm folder/inner.txt; test ! -e folder/inner.txt; mkdir folder/inner.txt
            test -z "$(ls -A folder/inner.txt)"; rmdir folder/inner.txt; mkfifo folder/inner.txt
            test "$(cat plain.txt)" = "$round"
          done
          """
        let child = try Child(Command.shell(script, mount.point))
        for _ in 0..<6 where child.status() == nil {
          let former = mount.worker
          kill(former, SIGKILL)
          #expect(eventually(within: 20) { mount.worker != former && mount.worker != mount.process.pid })
        }
        let outcome = try child.wait(timeout: 100)
        #expect(outcome.status == 0, "\(outcome.errorText)")
        let names = try (fixture.substitution.names(), (fixture.substitution / "folder").names())
        #expect(!names.0.contains(".wh.plain.txt") && names.0.contains("plain.txt"))
        #expect(!names.1.contains(".wh.inner.txt") && names.1.contains("inner.txt"))
        try expectUntouchedMain(fixture)
      }
    }
  }
}
