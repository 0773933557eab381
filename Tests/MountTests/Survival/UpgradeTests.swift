import Glibc
import Posix
import TestSupport
import Testing

/// `bundlefs upgrade`.
extension MountTests {
  @Suite struct UpgradeTests {
    /// A mount by a copy of the program, which can be replaced.
    private func withCopy(_ body: (_ mount: DaemonMount, _ program: ByteString, Fixture) throws -> Void)
      throws
    {
      let fixture = try Fixture()
      let program = fixture.folder / "bundlefs"
      try Command("cp", try Binary.underTest().text, program.text).check()
      var setup = fixture.setup
      setup.binary = program
      let mount = try DaemonMount(setup)
      #expect(mount.outcome.status == 0, "\(mount.outcome.errorText)")
      try body(mount, program, fixture)
      #expect(try Command([program, "unmount", mount.point]).run(timeout: 20).status == 0)
      #expect(try mount.isGone())
    }

    @Test("the installed program continues with open files, routes and results", .timeLimit(.minutes(2)))
    func upgrade() throws {
      try withCopy { mount, program, fixture in
        try (mount.point / ".routes").overwrite(Array("route Number i:A\nx:1\n".utf8), at: 0)
        let file = try Descriptor.open((mount.point / "plain.txt").bytes, [.read])
        let content = try file.readAll()
        try (fixture.main / "plain.txt").remove()
        let holder = try mount.process()
        for round in 1...3 {
          let worker = try mount.worker()
          try Command("cp", program.text, program.text + ".new").check()
          try ByteString(program.text + ".new").rename(to: program)
          #expect(try Command([program, "upgrade", mount.point]).run(timeout: 30).status == 0)
          #expect(try mount.process() == holder)
          #expect(try mount.worker() != worker)
          #expect(try file.readAll() == content)
          try (mount.point / ".routes").overwrite(Array("x:\(round + 1)\n".utf8), at: 0)
          let text = try (mount.point / ".routes").readText()
          #expect(text.contains("\"sequence\":\(round + 2),") && text.hasPrefix("route Number i:A\n"))
        }
        kill(try mount.worker(), SIGKILL)
        #expect(try file.readAll() == content)
      }
    }

    @Test("the upgrade needs no place to write to", .timeLimit(.minutes(1)))
    func readOnlyRoot() throws {
      let fixture = try Fixture()
      let script = """
        set -e
        program=$1 main=$2 mount=$3
        mount -t tmpfs bundlefs-test /mnt
        mkdir /mnt/main /mnt/view
        cp -a "$main/." /mnt/main
        for place in / /tmp /dev/shm /var/tmp /run "$(dirname "$main")"; do
          [[ $place == / ]] || mount --bind "$place" "$place"
          mount -o remount,bind,ro "$place"
          [[ $(touch "$place/probe" 2>&1) == *'Read-only file system'* ]]
        done
        trap 'umount -l /mnt/view 2>/dev/null || true' EXIT
        cd /mnt
        "$program" main view
        "$program" upgrade view
        cmp main/plain.txt view/plain.txt
        "$program" status --json view
        "$program" unmount view
        """
      let outcome = try Command(
        [
          "unshare", "-m", "--propagation", "private", "/bin/bash", "-c", ByteString(script), "bash",
          try Binary.underTest(), fixture.main, fixture.setup.point,
        ]
      ).run(timeout: 50)
      #expect(outcome.status == 0, "\(outcome.errorText)")
      #expect(outcome.outputText.contains("\"upgrades\":1"), "\(outcome.outputText)")
    }

    @Test("a program that cannot go on is refused", .timeLimit(.minutes(1)))
    func refusal() throws {
      try withCopy { mount, program, fixture in
        let worker = try mount.worker()
        let kept = fixture.folder / "kept"
        try program.rename(to: kept)
        try program.write("#!/bin/sh\necho too old\nexit 1\n")
        try program.setMode(0o755)
        let outcome = try Command([kept, "upgrade", mount.point]).run(timeout: 30)
        #expect(outcome.status == 1 && outcome.errorText.contains("too old"), "\(outcome.errorText)")
        #expect(try mount.worker() == worker)
        try kept.rename(to: program)
        #expect(try (mount.point / "plain.txt").readText() == "main's plain\n")
      }
    }

    /// A program that answers the question as the real one does.
    private func script(_ kept: ByteString, resume: String) -> String {
      """
      #!/bin/sh
      case $1 in --can-resume) exec '\(kept.text)' "$@" ;; esac
      \(resume)

      """
    }

    @Test(
      "a program that does not answer the question, or that others can write, is refused",
      .timeLimit(.minutes(2)))
    func untrusted() throws {
      try withCopy { mount, program, fixture in
        let worker = try mount.worker()
        let kept = fixture.folder / "kept"
        try program.rename(to: kept)
        let real = script(kept, resume: #"exec "$@""#)
        let candidates: [(content: String, owner: UInt32, mode: UInt32, reason: String)] = [
          ("#!/bin/sh\nexit 0\n", 0, 0o755, "does not answer as bundlefs does"),
          (
            "#!/bin/sh\necho bundlefs can resume version 4: 0\n", 0, 0o755, "does not answer as bundlefs does"
          ),
          ("#!/bin/sh\nkill -9 $$\n", 0, 0o755, "was killed by signal 9"),
          ("#!/bin/sh\nsleep 1000 & wait\n", 0, 0o755, "does not answer within 5 s"),
          ("#!/bin/sh\nexec >&- 2>&-\nsleep 1000\n", 0, 0o755, "does not answer within 5 s"),
          ("#!/bin/sh\nexec yes\n", 0, 0o755, "does not answer within 5 s"),
          (real, 1234, 0o755, "belongs to user 1234"), (real, 1234, 0o4777, "belongs to user 1234"),
          (real, 0, 0o775, "other users may write it"), (real, 0, 0o644, "it cannot be run"),
        ]
        for candidate in candidates {
          try program.write(candidate.content)
          try #require(chown(program.text, candidate.owner, 0) == 0)
          try program.setMode(candidate.mode)
          let outcome = try Command([kept, "upgrade", mount.point]).run(timeout: 20)
          #expect(
            outcome.status == 1 && outcome.errorText.contains(candidate.reason),
            "\(candidate): \(outcome.errorText)")
          try program.remove()
        }
        try Command("cp", "/bin/true", program.text).check()
        #expect(
          try Command([kept, "upgrade", mount.point]).run(timeout: 20).errorText.contains(
            "does not answer as bundlefs does"))
        try program.remove()
        try #require(mkfifo(program.text, 0o755) == 0)
        #expect(
          try Command([kept, "upgrade", mount.point]).run(timeout: 20).errorText.contains(
            "not a regular file"))
        try program.remove()
        try kept.rename(to: program)
        #expect(try mount.worker() == worker)
        #expect(try (mount.point / "plain.txt").readText() == "main's plain\n")
      }
    }

    @Test(
      "the former program continues where the new one dies or hangs; nothing is lost",
      .timeLimit(.minutes(3)),
      arguments: ["exit 1", "kill -9 $$", "exec sleep 1000"])
    func takeoverFailure(resume: String) throws {
      try withCopy { mount, program, fixture in
        let control = mount.point / ".routes"
        try control.overwrite(Array("route Number i:A\nx:1\n".utf8), at: 0)
        let file = try Descriptor.open((mount.point / "plain.txt").bytes, [.read])
        let content = try file.readAll()
        try (fixture.main / "plain.txt").remove()
        let kept = fixture.folder / "kept"
        try program.rename(to: kept)
        try program.write(script(kept, resume: resume))
        try program.setMode(0o755)
        let poster = try Child(
          .shell(
            #"for n in $(seq 2 400); do echo "x:$n" >"$1/.routes" || exit 1; cat "$1/replaced.txt" || exit 2; done"#,
            mount.point))
        let outcome = try Command([kept, "upgrade", mount.point]).run(timeout: 30)
        #expect(
          outcome.status == 1 && outcome.errorText.contains("the former one continues"),
          "\(outcome.errorText)")
        #expect(try poster.wait(timeout: 60).status == 0)
        #expect(try file.readAll() == content)
        let text = try control.readText()
        #expect(text.contains("\"sequence\":401,") && !text.contains("\"sequence\":402,"))
        try program.remove()
        try Command("cp", "-p", kept.text, program.text).check()
        #expect(try Command([program, "upgrade", mount.point]).run(timeout: 30).status == 0)
        #expect(try file.readAll() == content)
        kill(try mount.worker(), SIGKILL)
        #expect(try file.readAll() == content)
      }
    }

    @Test(
      "an upgrade is counted before the new program replies, whenever the guard runs", .timeLimit(.minutes(1))
    )
    func count() throws {
      try withCopy { mount, program, fixture in
        let (kept, go, holder) = (fixture.folder / "kept", fixture.folder / "go", try mount.process())
        try program.rename(to: kept)
        let wait = "while ! [ -e '\(go.text)' ]; do sleep 0.02; done"
        try program.write(script(kept, resume: #"\#(wait); exec '\#(kept.text)' "$@""#))
        try program.setMode(0o755)
        let upgrade = try Child(Command([kept, "upgrade", mount.point]))
        // Once the holder runs the script, only the command and the guard run the former program.
        var found: [pid_t] = []
        #expect(
          eventually(within: 20) {
            found = Self.processes(running: kept).filter { $0 != upgrade.pid }
            return found.count == 1 && found[0] != holder
          })
        let guardian = try #require(found.first)
        #expect(kill(guardian, SIGSTOP) == 0)
        defer { kill(guardian, SIGCONT) }
        try go.write("")
        #expect(try upgrade.wait(timeout: 30).status == 0)
        #expect(try Command([kept, "status", mount.point]).check().outputText.contains("; upgrades: 1\n"))
        try program.remove()
        try kept.rename(to: program)
      }
    }

    private static func processes(running program: ByteString) -> [pid_t] {
      ((try? ByteString("/proc").names()) ?? []).compactMap { pid_t($0.text) }.filter { process in
        (try? ("/proc" / ByteString("\(process)") / "exe").linkTarget()) == program
      }
    }

    @Test("readers see no error while the program is replaced", .timeLimit(.minutes(2)))
    func readers() throws {
      try withCopy { mount, program, _ in
        let script = """
          end=$((SECONDS + 5)); n=0
          while ((SECONDS < end)); do
            [[ $(< "$1/replaced.txt") == "substitution's replaced, longer" ]] || exit 1
            [[ -n $(ls "$1/folder") ]] || exit 2
            n=$((n + 1))
          done
          echo $n
          """
        let reader = try Child(.shell(script, mount.point))
        while reader.status() == nil {
          #expect(try Command([program, "upgrade", mount.point]).run(timeout: 30).status == 0)
        }
        #expect(try reader.wait(timeout: 20).status == 0)
      }
    }

    @Test(
      "a barrier that a process has no time for is passed by its successor, which compares layers, too",
      .timeLimit(.minutes(2)))
    func barriers() throws {
      try withCopy { mount, program, fixture in
        let script = """
          import os, subprocess, sys, threading, time
          mount, layer, program = sys.argv[1:]
          end = time.time() + 8
          def fail(reason):
              print(reason, flush=True)
              os._exit(1)
          def pass_barriers(name):
              routes = os.open(mount + "/.routes", os.O_WRONLY)
              value = 0
              while time.time() < end:
                  value += 1
                  with open(layer + "/new" + name, "w") as file: file.write(str(value))
                  os.rename(layer + "/new" + name, layer + "/" + name)
                  os.write(routes, b"bundlefs:///sync\\n")
                  shown = open(mount + "/" + name).read()
                  if shown != str(value): fail(f"{shown} instead of {value} after a barrier")
          def compare():
              while time.time() < end:
                  result = subprocess.run([program, "diff", mount], capture_output=True)
                  if result.returncode != 0: fail(result.stderr)
          threads = [threading.Thread(target=pass_barriers, args=(str(number),)) for number in range(4)]
          threads.append(threading.Thread(target=compare))
          for thread in threads: thread.start()
          for thread in threads: thread.join()
          """
        let child = try Child(
          Command(["python3", "-c", ByteString(script), mount.point, fixture.main, program]))
        while child.status() == nil {
          #expect(try Command([program, "upgrade", mount.point]).run(timeout: 30).status == 0)
        }
        let outcome = try child.wait(timeout: 20)
        #expect(outcome.status == 0, "\(outcome.outputText)")
      }
    }
  }
}
