import Glibc
import Posix
import TestSupport
import Testing

/// `bundlefs run`: its process becomes the command, and nothing outlives it.
extension MountTests {
  @Suite struct RunProcessTests {
    typealias Caller = PrivateRun.Caller

    @Test(
      "a killed command has the status of its signal", .timeLimit(.minutes(1)), arguments: Caller.allCases)
    func signals(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        let outcome = try run.outside(#""$@"; echo $?"#, "sh", "-c", "kill -9 $$").run()
        #expect(outcome.outputText == "137\n")
        let child = try Child(run.command("sleep", "60"))
        try waitForProgram("sleep", child)
        child.signal(SIGTERM)
        #expect(try child.wait(timeout: 20).status == 143)
      }
    }

    @Test("the mount stays until the last process ends", .timeLimit(.minutes(1)), arguments: Caller.allCases)
    func forks(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        let scratch = try run.scratch()
        let script = #"""
          { until [ -e "$3/go" ]; do sleep 0.02; done; cat "$1/replaced.txt" > "$3/part"; mv "$3/part" "$3/result"
          } < /dev/null > /dev/null 2>&1 &
          exit 3
          """#
        #expect(try run.shell(script).run().status == 3)
        #expect(run.daemons.count == 2 && MountTable.isInAnyNamespace(run.fixture.main))
        try (scratch / "go").write("")
        let isThere = eventually(within: 20) { (scratch / "result").exists }
        #expect(isThere)
        #expect(try (scratch / "result").readText() == "substitution's replaced, longer\n")
      }
    }

    @Test("reads from a pipe and writes to one", .timeLimit(.minutes(1)), arguments: Caller.allCases)
    func pipes(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        let script = #"seq 100000 | "$@" | tail -n 1; echo ${PIPESTATUS[@]}"#
        #expect(try run.outside(script, "cat").run().outputText == "100000\n0 0 0\n")
        // The daemon must not keep the pipe open.
        let early = try run.outside(#"{ "$@" & } | cat"#, "sh", "-c", "exec >&-; exec sleep 60").run(
          timeout: 20)
        #expect(early.status == 0)
        for process in sleepers(run) { kill(process, SIGKILL) }
      }
    }

    @Test("has the terminal", .timeLimit(.minutes(1)), arguments: Caller.allCases)
    func terminal(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        let scratch = try run.scratch()
        let inner = #"""
          [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && [ $(ps -o tpgid= -p $$) = $(ps -o pgid= -p $$) ] && : > "$1/terminal"
          stty rows 31 cols 97 < /dev/tty && stty size > "$1/size"; : > "$1/ready"; exec sleep 60
          """#
        let line = scratch / "line"
        let words = run.words(["bash", "-c", ByteString(inner), "bash", scratch])
        let quoted = words.map { "'" + $0.text.replacing("'", with: #"'\''"#) + "'" }
        try line.write("#!/bin/bash\nexec " + quoted.joined(separator: " ") + "\n")
        try line.setMode(0o755)
        // Ctrl-C, once the command is there.
        let feed = #"""
          { until [ -e "$0/ended" ]; do [ ! -e "$0/ready" ] || printf '\003'; sleep 0.05; done; } |
            { script -qec "$0/line" /dev/null > /dev/null; echo $? > "$0/status"; : > "$0/ended"; }
          cat "$0/status"
          """#
        let outcome = try run.asCaller(Command(["bash", "-c", ByteString(feed), scratch])).run(timeout: 30)
        #expect(outcome.outputText == "130\n", "\(outcome.errorText)")
        #expect((scratch / "terminal").exists)
        #expect(try (scratch / "size").readText() == "31 97\n")
      }
    }

    @Test(
      "the command has the caller's open files, limits and signals", .timeLimit(.minutes(1)),
      arguments: Caller.allCases)
    func inheritance(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        let show = #"""
          for file in /proc/self/fd/*; do echo "${file##*/}"; done | sort -n | tr '\n' ' '; ulimit -a
          grep -E "^(Sig(Blk|Ign|Cgt)|NoNewPrivs)" /proc/self/status; umask; pwd; echo "$HOME"
          """#
        for prefix in [
          "exec 5< /dev/null; ", "exec <&-; ", "trap '' USR1; umask 017; ulimit -n 300; cd /usr; ",
        ] {
          let script = prefix + #"bash -c "${!#}" && echo === && "$@""#
          let outcome = try run.outside(script, "bash", "-c", ByteString(show)).run()
          let parts = outcome.outputText.split(separator: "===\n", omittingEmptySubsequences: false)
          #expect(outcome.status == 0 && parts.count == 2 && parts[0] == parts[1], "\(outcome)")
        }
      }
    }

    @Test("survives the death of its worker", .timeLimit(.minutes(1)), arguments: Caller.allCases)
    func worker(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        let scratch = try run.scratch()
        let script = #"""
          exec 3< "$1/plain.txt"; : > "$3/ready"; until [ -e "$3/go" ]; do sleep 0.02; done
          cat <&3; cat "$1/replaced.txt"; "$2" status "$1" | grep -o "restarts: 1"
          """#
        let child = try Child(try run.shell(script))
        let isReady = eventually(within: 20) { (scratch / "ready").exists }
        #expect(isReady, "\(child.errorText)")
        let holder = try #require(run.daemons.min())
        kill(Mount.worker(of: holder), SIGKILL)
        try (scratch / "go").write("")
        let outcome = try child.wait(timeout: 20)
        #expect(outcome.outputText == "main's plain\nsubstitution's replaced, longer\nrestarts: 1\n")
      }
    }

    @Test("nothing is left after SIGKILL of any part", .timeLimit(.minutes(1)), arguments: Caller.allCases)
    func killed(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        let child = try Child(run.command("sleep", "60"))
        try waitForProgram("sleep", child)
        child.signal(SIGKILL)
        #expect(try child.wait(timeout: 20).status == 137)
        #expect(try run.isGone())
        let other = try Child(run.command("sleep", "60"))
        try waitForProgram("sleep", other)
        kill(try #require(run.daemons.min()), SIGKILL)
        let areDead = eventually(within: 20) { run.daemons.isEmpty }
        #expect(areDead && other.status() == nil)
        let listed = try ListedMount.list(below: run.fixture.main, program: run.program)
        #expect(listed.map(\.state) == ["dead"])
        other.signal(SIGTERM)
        #expect(try other.wait(timeout: 20).status == 143)
      }
    }

    @Test("failures have statuses of their own", .timeLimit(.minutes(1)), arguments: Caller.allCases)
    func failures(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        let fixture = run.fixture
        #expect(try run.command("no-such-program").run().status == 127)
        #expect(try run.command(fixture.main / "plain.txt").run().status == 126)
        let missing = run.words(["true"], substitution: fixture.folder / "missing")
        let file = [run.program, "run", fixture.main / "plain.txt", "--", "true"]
        for (words, reason) in [
          (missing, "missing"), (file, "--at"), ([run.program, "run", fixture.main, "true"], "'true'"),
          ([run.program, "run", fixture.main, "--"], "COMMAND"),
          ([run.program, "run", "--", "true"], "MAIN"),
          ([run.program, "run", "-o", "no_such", fixture.main, "--", "true"], "no_such"),
          ([run.program, "run", "-x", fixture.main, "--", "true"], "-x"),
        ] {
          let outcome = try run.asCaller(Command(words)).run()
          #expect(outcome.status == 125 && outcome.errorText.contains(reason), "\(outcome.errorText)")
          #expect(outcome.errorText.split(separator: "\n").count == 1)
        }
        // These are the command's.
        #expect(try run.command("echo", "--help").run().status == 0)
        #expect(try run.command("sh", "-c", "echo $0", "-h").run().outputText == "-h\n")
      }
    }

    @Test("says what forbids mount namespaces", .timeLimit(.minutes(1)), arguments: Caller.allCases)
    func forbidden(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        let script = #"echo 0 > /proc/sys/user/max_mnt_namespaces && exec "$@""#
        let words: [ByteString] = [
          "unshare", "--user", "--map-root-user", "bash", "-c", ByteString(script), "bash",
        ]
        let outcome = try run.asCaller(Command(words + run.words(["true"]))).run()
        #expect(
          outcome.status == 125 && outcome.errorText.contains("user.max_mnt_namespaces"),
          "\(outcome.errorText)")
      }
    }

    private func waitForProgram(_ name: String, _ child: Child) throws {
      let comm = ByteString("/proc/\(child.pid)/comm")
      let isRunning = eventually(within: 20) { (try? comm.readText()) == name + "\n" }
      if !isRunning { throw TestFailure("no \(name): \(child.errorText)") }
    }

    private func sleepers(_ run: PrivateRun) -> [pid_t] {
      ((try? ByteString("/proc").names()) ?? []).compactMap { pid_t($0.text) }.filter { process in
        (try? ByteString("/proc/\(process)/comm").readText()) == "sleep\n"
          && ((try? ByteString("/proc/\(process)/mountinfo").readText()) ?? "").contains(
            " \(run.fixture.main) ")
      }
    }
  }
}
