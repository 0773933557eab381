import Glibc
import Posix
import TestSupport
import Testing

/// `bundlefs list`.
extension MountTests {
  @Suite struct ListCommandTests {
    @Test("lists mounts with their layers, state and user", .timeLimit(.minutes(1)))
    func own() throws {
      let fixture = try Fixture()
      let program = try Binary.underTest()
      try withMount(fixture.setup) { mount in
        let listed = try ListedMount.list(below: mount.point, program: program)
        try #require(listed.count == 1)
        #expect(listed[0].state == "alive" && listed[0].user == 0 && listed[0].process == nil)
        #expect(listed[0].main == fixture.main.text)
        #expect(listed[0].layers?.map(\.path) == [fixture.substitution.text, fixture.main.text])
        #expect(listed[0].layers?.map(\.role) == ["substitution", "MAIN"])
        let text = try Command([program, "list"]).check().outputText
        #expect(text.contains("\(mount.point)  (alive, user 0)\n"), "\(text)")
        #expect(text.contains("  MAIN  directory  \(fixture.main)\n"), "\(text)")
      }
      #expect(try ListedMount.list(below: fixture.point, program: program).isEmpty)
    }

    @Test("dead, stopped and covered mounts are listed without waiting for them", .timeLimit(.minutes(1)))
    func deadAndStopped() throws {
      let fixture = try Fixture()
      let program = try Binary.underTest()
      let dead = try DaemonMount(fixture.setup("survive=off"))
      kill(try dead.process(), SIGKILL)
      let isDead = try eventually(within: 10) {
        try ListedMount.list(below: fixture.point, program: program).map(\.state) == ["dead"]
      }
      #expect(isDead)
      let listed = try ListedMount.list(below: fixture.point, program: program)
      #expect(listed.first?.layers == nil && listed.first?.main == fixture.main.text)

      var setup = fixture.setup
      setup.point = try fixture.folder.folder("other")
      try withMount(setup) { mount in
        mount.signalWorker(SIGSTOP)
        defer { mount.signalWorker(SIGCONT) }
        let stopped = try ListedMount.list(below: mount.point, program: program)
        #expect(stopped.map(\.state) == ["unresponsive"])
        mount.signalWorker(SIGCONT)
        try Command("mount", "-t", "tmpfs", "none", mount.point.text).check()
        defer { _ = try? Command("umount", mount.point.text).run() }
        let covered = try ListedMount.list(below: mount.point, program: program)
        #expect(covered.map(\.state) == ["covered"])
      }
    }

    @Test("root sees the layers of a user's mount, other users that it exists", .timeLimit(.minutes(1)))
    func users() throws {
      let fixture = try Fixture()
      try UnprivilegedTests().withUserMount(fixture) { mount, program in
        let layers = [fixture.substitution.text, fixture.main.text]
        for user in [nil, UnprivilegedTests.nobody] {
          let listed = try ListedMount.list(below: mount.point, program: program, user: user)
          #expect(listed.map(\.state) == ["alive"])
          #expect(listed.first?.layers?.map(\.path) == layers)
        }
        let other = try ListedMount.list(below: mount.point, program: program, user: 12345)
        #expect(other.map(\.state) == ["unknown"] && other.first?.reason != nil)
        #expect(other.first?.main == fixture.main.text && other.first?.user == 65534)
      }
    }

    @Test("names the process of another mount namespace", .timeLimit(.minutes(1)))
    func namespace() throws {
      let fixture = try Fixture()
      let program = try Binary.underTest()
      let stop = fixture.folder / "stop"
      let script = #"""
        "$1" "$2" "$3" -o substitution="$4" || exit 1
        until [ -e "$5" ]; do sleep 0.05; done
        "$1" unmount "$3"
        """#
      let words: [ByteString] = [program, fixture.main, fixture.point, fixture.substitution, stop]
      let child = try Child(
        Command(
          ["unshare", "--mount", "--propagation", "private", "bash", "-c", ByteString(script), "bash"] + words
        ))
      defer { try? stop.write("") }
      let isListed = try eventually(within: 20) {
        try ListedMount.list(below: fixture.point, program: program).first?.state == "alive"
      }
      #expect(isListed)
      let listed = try ListedMount.list(below: fixture.point, program: program)
      #expect(listed.count == 1 && listed.first?.process?.id == child.pid)
      #expect(listed.first?.process?.command == "bash")
      #expect(listed.first?.layers?.map(\.path) == [fixture.substitution.text, fixture.main.text])
      // Only root may look into namespaces of others.
      let copy = fixture.folder / "bundlefs"
      try Command("cp", program.text, copy.text).check()
      #expect(try ListedMount.list(below: fixture.point, program: copy, user: 12345).isEmpty)
      try stop.write("")
      #expect(try child.wait(timeout: 20).status == 0)
      #expect(try ListedMount.list(below: fixture.point, program: program).isEmpty)
    }

    @Test("refuses arguments that it does not know", .timeLimit(.minutes(1)))
    func usage() throws {
      let outcome = try Command([try Binary.underTest(), "list", "here"]).run()
      #expect(outcome.status == 2 && outcome.errorText.contains("here"))
    }
  }
}
