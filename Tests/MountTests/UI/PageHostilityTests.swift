import Glibc
import Posix
import Routing
import TestSupport
import Testing

/// What other users, other programs and mounts that hang do to `bundlefs ui`.
extension MountTests {
  @Suite struct PageHostilityTests {
    @Test(
      "another user cannot take the connections that the page needs", .enabled(if: geteuid() == 0),
      .timeLimit(.minutes(1)))
    func connections() throws {
      let script = """
        import socket, sys, time
        held = []
        for _ in range(300):
            try: held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1))
            except OSError: pass
        print("held", flush=True)
        time.sleep(60)
        """
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        let server = try PageServer(mount)
        let words: [ByteString] = [
          "/usr/bin/python3", "-c", ByteString(script), ByteString("\(server.client.port)"),
        ]
        let stranger = try Child(Command(words).asUser(65534))
        defer { try? stranger.kill() }
        #expect(eventually(within: 30) { stranger.outputText == "held\n" }, "\(stranger.errorText)")
        let events = try server.events()
        for _ in 0..<20 { #expect(try server.client.get("/api/mounts").status == 200) }
        withExtendedLifetime(events) {}
        #expect(try server.interrupt().status == 0)
      }
    }

    @Test("a mount that hangs does not hide the others", .timeLimit(.minutes(1)))
    func hangingMount() throws {
      let (fixture, other) = (try Fixture(), try Fixture())
      try withMount(fixture.setup) { mount in
        try withMount(other.setup("watchdog=off")) { hanging in
          let server = try PageServer(mount, hanging)
          hanging.signalWorker(SIGSTOP)
          defer { hanging.signalWorker(SIGCONT) }
          guard case .array(let mounts) = try server.json("/api/mounts") else {
            throw TestFailure("no array")
          }
          #expect(mounts.map { $0["alive"] } == [.boolean(true), .boolean(false)])
          #expect(try server.client.get("/api/mounts/0/tree").status == 200)
        }
      }
    }

    @Test("profiles that are saved at once are whole", .timeLimit(.minutes(1)))
    func savedAtOnce() throws {
      let fixture = try LayersFixture()
      try withMount(fixture.setup("a", "b")) { mount in
        let server = try PageServer(mount, environment: ["XDG_CONFIG_HOME": fixture.folder.path.text])
        let client = server.client
        for _ in 0..<20 {
          let connections = try (0..<12).map { _ in
            let connection = try PageConnection(client.port)
            try connection.send(
              "POST", client.address("/api/mounts/0/profiles"), client.changing(),
              Array(#"{"save":"one","replace":true}"#.utf8))
            return connection
          }
          for connection in connections {
            let reply = try PageReply(connection.readToEnd())
            #expect(reply.status == 200, "\(reply.text)")
          }
        }
        #expect(try (fixture.folder / "bundlefs/profiles").names() == ["one"])
        #expect(try server.interrupt().status == 0)
      }
    }

    @Test("an undo never takes away what a program has written meanwhile", .timeLimit(.minutes(2)))
    func undoRace() throws {
      let fixture = try Fixture()
      var random = SplitMix64(seed: 45)
      try withMount(fixture.setup) { mount in
        let (server, file) = (try PageServer(mount), fixture.substitution / "replaced.txt")
        let client = server.client
        for round in 0..<150 {
          let id = try server.upload("replaced.txt", "uploaded \(round)")
          let (text, temporary) = ("written \(round)", fixture.folder / "temporary")
          try temporary.write(text)
          let connection = try PageConnection(client.port)
          try connection.send(
            "POST", client.address("/api/mounts/0/undo"), client.changing(),
            Array("{\"undo\":\"\(id)\"}".utf8))
          usleep(UInt32.random(in: 0..<4000, using: &random))
          try temporary.rename(to: file)
          let reply = try PageReply(connection.readToEnd())
          #expect(try file.readText() == text, "\(reply.text)")
        }
        #expect(try server.interrupt().status == 0)
      }
    }

    @Test(
      "root changes no layer of another user for a mount of a third", .enabled(if: geteuid() == 0),
      .timeLimit(.minutes(1)))
    func owners() throws {
      let fixture = try Fixture()
      let (configuration, program) = (fixture.folder / "fuse.conf", fixture.folder / "bundlefs")
      try configuration.write("user_allow_other\n")
      try Command("cp", try Binary.underTest().text, program.text).check()
      for path in [fixture.folder.path, fixture.point, fixture.main, fixture.substitution, program] {
        try path.setMode(0o755)
      }
      try fixture.point.setOwner(65534, group: 65534)
      let script = """
        mount --bind "$2" /etc/fuse.conf
        setpriv --reuid 65534 --regid 65534 --clear-groups "$1" "$3" "$5" -o "allow_other,substitution=$4" || exit 9
        "$1" override "$5" plain.txt >&2
        echo "status $?"
        chown 65534 "$4"
        "$1" override "$5" plain.txt >&2
        echo "status $?"
        "$1" unmount "$5"
        """
      let words: [ByteString] = [
        "unshare", "-m", "sh", "-c", ByteString(script), "sh", program, configuration,
        fixture.main, fixture.substitution, fixture.point,
      ]
      var outcome: Outcome?
      try withOpenDevice { outcome = try Command(words).run(timeout: 40) }
      guard let outcome else { return }
      #expect(outcome.outputText == "status 1\nstatus 0\n", "\(outcome.outputText) \(outcome.errorText)")
      #expect(outcome.errorText.contains("the layer belongs to user 0, and the mount to user 65534"))
    }
  }
}
