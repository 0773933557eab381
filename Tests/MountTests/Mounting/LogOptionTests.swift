import Glibc
import Posix
import TestSupport
import Testing

/// Where the messages of a daemon go.
extension MountTests {
  @Suite struct LogOptionTests {
    @Test(
      "'log=FILE' has the messages, also of later workers and of another program", .timeLimit(.minutes(2)))
    func file() throws {
      let fixture = try Fixture()
      let file = fixture.folder / "daemon.log"
      let setup = fixture.setup("log=" + file)
      try withMount(setup) { mount in
        #expect(try file.status().permissions == 0o600 && mount.report().log == "file")
        try mount.killWorker()
        #expect(eventually(within: 20) { ((try? file.readText()) ?? "").contains("that have died: 1,") })
        try Command([try Binary.underTest(), "upgrade", mount.point]).check()
        try mount.killWorker()
        #expect(eventually(within: 20) { ((try? file.readText()) ?? "").contains("that have died: 2,") })
        let lines = try file.readText().split(separator: "\n")
        #expect(lines.count == 2 && lines.allSatisfy { $0.hasPrefix("bundlefs: ") }, "\(lines)")
        #expect(try mount.report().log == "file")
      }
      // A second mount appends.
      try withMount(setup) { mount in
        try mount.killWorker()
        let isAppended = eventually(within: 20) {
          ((try? file.readText()) ?? "").split(separator: "\n").count == 3
        }
        #expect(isAppended, "\((try? file.readText()) ?? "")")
      }
    }

    @Test(
      "a file that cannot be opened, and a service that is missing, refuse the mount", .timeLimit(.minutes(1))
    )
    func faults() throws {
      let fixture = try Fixture()
      let pipe = fixture.folder / "pipe"
      try pipe.makeNode(mode: FileKind.fifo.rawValue | 0o600)
      let cases: [(ByteString, CInt, String)] = [
        ("log=" + fixture.folder.path + "/none/x", 1, "No such file or directory"),
        ("log=" + fixture.folder.path, 1, "Is a directory"), ("log=" + pipe, 1, "No such device or address"),
        ("log=relative", 2, "an absolute path"), ("log=", 2, "an absolute path"),
        ("log", 2, "an absolute path"),
      ]
      for (option, status, message) in cases {
        let outcome = try Command(
          [try Binary.underTest(), fixture.main, fixture.point, "-o", option]
        ).run()
        #expect(outcome.status == Int(status) && outcome.errorText.contains(message), "\(outcome.errorText)")
        #expect(try MountTable.bundlefs(at: fixture.point) == nil)
      }
      #expect(!(fixture.folder / "none").exists)
    }

    /// In a mount namespace with a /dev of its own, which has a socket for messages, and without a journal.
    private static let syslog = #"""
      set -eu
      mkdir "$1/dev"
      mknod -m 666 "$1/dev/null" c 1 3
      mknod -m 666 "$1/dev/fuse" c 10 229
      mknod -m 666 "$1/dev/urandom" c 1 9
      ln -s /proc/self/fd "$1/dev/fd"
      python3 -c '
      import socket, sys
      s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
      s.bind(sys.argv[1] + "/dev/log")
      open(sys.argv[1] + "/ready", "w")
      with open(sys.argv[1] + "/messages", "wb", 0) as f:
        while True: f.write(s.recv(9000))
      ' "$1" &
      listener=$!
      trap 'kill $listener; "$2" unmount --lazy "$4" 2>/dev/null || true' EXIT
      until [[ -e $1/ready ]]; do sleep 0.02; done
      [[ ! -e /run/systemd/journal ]] || mount -t tmpfs none /run/systemd/journal
      mount --bind "$1/dev" /dev
      status() { "$2" status "$4" --json | grep -o '"log":"[a-z]*","cache"'; }
      "$2" "$3" "$4"
      status "$@"
      kill -KILL "$(pgrep -P "$(pgrep -o -f "^$2 $3 $4\$")")"
      until grep -q 'have died: 1,' "$1/messages"; do sleep 0.02; done
      cat "$1/messages"
      "$2" unmount "$4"
      rm "$1/dev/log"
      "$2" "$3" "$4"
      status "$@"
      "$2" status "$4" | grep 'go nowhere'
      "$2" unmount "$4"
      "$2" "$3" "$4" -o log=syslog || echo "refused: $?"
      """#

    @Test("without a journal they go to syslog, or nowhere, which 'status' says", .timeLimit(.minutes(1)))
    func services() throws {
      let fixture = try Fixture()
      let outcome = try Command(
        [
          "unshare", "--mount", "--propagation", "private", "bash", "-c", ByteString(Self.syslog), "bash",
          fixture.folder.path, try Binary.underTest(), fixture.main, fixture.point,
        ]
      ).run()
      #expect(outcome.status == 0, "\(outcome.errorText)")
      let lines = outcome.outputText.split(separator: "\n")
      try #require(lines.count == 5, "\(lines)")
      #expect(
        lines[0] == #""log":"syslog","cache""# && lines[2] == #""log":"none","cache""#
          && lines[4] == "refused: 1")
      #expect(lines[1].hasPrefix("bundlefs: ") && lines[1].hasSuffix("; the mount continues"))
      #expect(lines[3].hasPrefix("messages go nowhere"))
      #expect(outcome.errorText.contains("log=syslog: No such file or directory"))
    }

    @Test("'log=stderr' keeps the command's standard error", .timeLimit(.minutes(1)))
    func standardError() throws {
      let fixture = try Fixture()
      let script = #"""
        "$1" "$2" "$3" -o log=stderr 2>"$4"
        kill -KILL "$(pgrep -P "$(pgrep -o -f "^$1 $2 $3 ")")"
        until grep -q 'have died: 1,' "$4"; do sleep 0.02; done
        "$1" unmount "$3"
        """#
      let command = Command.shell(
        script, try Binary.underTest(), fixture.main, fixture.point, fixture.folder / "errors")
      let mount = try DaemonMount(command, point: fixture.point)
      #expect(mount.outcome.status == 0, "\(mount.outcome.errorText)")
    }
  }
}
