import Glibc
import Posix
import TestSupport
import Testing

/// `bundlefs run`: the inotify events that programs in the mount receive for changes in the layers.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct RunEventTests {
    typealias Caller = PrivateRun.Caller

    /// Calls the body while a program in the mount watches its root.
    private func withListener(_ caller: Caller, _ body: (PrivateRun, Child) throws -> Void) throws {
      try PrivateRun.with(caller) { run in
        if let user = run.user {
          // Files of groups that the user namespace lacks take no changes.
          for layer in [run.fixture.main, run.fixture.substitution] {
            try Command("chgrp", "-Rh", "\(user)", layer.text).check()
          }
        }
        let script = AnnounceOptionTests.listener
        let listener = try Child(run.command("/usr/bin/python3", "-c", script, run.fixture.main))
        defer { try? listener.kill() }
        let isListening = eventually(within: 20) { listener.outputText.contains("listening") }
        try #require(isListening, "\(listener.errorText)")
        try body(run, listener)
      }
    }

    /// Makes changes in the layers as the caller, and waits for the events of each.
    private func expectEvents(_ run: PrivateRun, _ listener: Child) throws {
      let (main, top) = (run.fixture.main, run.fixture.substitution)
      for (change, events) in [
        ("echo over > $2/plain.txt", ["plain.txt 8"]), ("echo again > $2/plain.txt", ["plain.txt 8"]),
        ("rm $2/plain.txt", ["plain.txt 8"]), ("echo edited > $1/plain.txt", ["plain.txt 8"]),
        ("echo n > $1/new", ["new 100", "new 8"]), ("mv $1/new $1/moved", ["moved 80"]),
        ("chmod 600 $1/moved", ["moved 4"]), ("rm $1/moved", ["moved 200"]),
        ("mkdir $2/dir", ["dir 40000100"]), ("rmdir $2/dir", ["dir 40000200"]),
      ] {
        let before = listener.outputText.utf8.count
        try run.asCaller(Command(["bash", "-c", ByteString(change), "bash", main, top])).check()
        for event in events {
          let isSeen = eventually(within: 10) {
            listener.outputText.dropFirst(before).contains("\(event)\n")
          }
          #expect(isSeen, "\(change): \(event), not only \(listener.outputText.dropFirst(before))")
        }
      }
    }

    @Test(
      "a watcher sees what happens to names in the layers", .timeLimit(.minutes(1)),
      arguments: Caller.allCases)
    func events(caller: Caller) throws {
      try withListener(caller) { run, listener in try expectEvents(run, listener) }
    }

    @Test(
      "and also once its worker has died, and again", .timeLimit(.minutes(2)), arguments: Caller.allCases)
    func deaths(caller: Caller) throws {
      try withListener(caller) { run, listener in
        let holder = try #require(run.daemons.min())
        for _ in 0..<3 {
          let former = Mount.worker(of: holder)
          kill(former, SIGKILL)
          let isReplaced = eventually(within: 20) { ![former, holder].contains(Mount.worker(of: holder)) }
          #expect(isReplaced)
          // What changes before the successor watches is reported by an event of the directory.
          let before = listener.outputText.utf8.count
          try (run.fixture.main / "link").remove()
          try (run.fixture.main / "link").makeLink(to: "plain.txt")
          let isReported = eventually(within: 10) { listener.outputText.utf8.count > before }
          #expect(isReported)
          try expectEvents(run, listener)
        }
      }
    }

    @Test("and after an upgrade", .timeLimit(.minutes(1)), arguments: Caller.allCases)
    func upgrade(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        if let user = run.user {
          try Command("chgrp", "-Rh", "\(user)", run.fixture.main.text).check()
        }
        // Only inside does a path lead to the mount.
        let script = #"""
          "$2" upgrade "$1" && "$2" upgrade "$1" || exit 1
          /usr/bin/python3 -c "$4" "$1" > "$3/events" & until [ -s "$3/events" ]; do sleep 0.02; done
          : > "$3/ready"
          until grep -q "plain.txt 8" "$3/events"; do sleep 0.02; done; kill $!
          """#
        let scratch = try run.scratch()
        let words: [ByteString] = [
          "bash", "-c", ByteString(script), "bash", run.fixture.main, run.program, scratch,
          AnnounceOptionTests.listener,
        ]
        let child = try Child(run.asCaller(Command(run.words(words))))
        defer { try? child.kill() }
        let isListening = eventually(within: 30) { (scratch / "ready").exists }
        try #require(isListening, "\(child.errorText)")
        let edit = Command(["bash", "-c", "echo edited > $0/plain.txt", run.fixture.main])
        try run.asCaller(edit).check()
        #expect(try child.wait(timeout: 20).status == 0)
      }
    }

    @Test(
      "announcing does not keep the mount after its last process", .timeLimit(.minutes(2)),
      arguments: Caller.allCases)
    func end(caller: Caller) throws {
      for _ in 0..<3 {
        try withListener(caller) { run, listener in
          let script = #"for n in {1..20}; do for f in {1..50}; do echo $n > "$0/file$f"; done; done"#
          let changes = try Child(
            run.asCaller(Command(["bash", "-c", ByteString(script), run.fixture.main])))
          let isSeen = eventually(within: 10) { listener.outputText.contains("file9 8\n") }
          #expect(isSeen)
          try listener.kill()
          #expect(try run.isGone())
          _ = try changes.wait(timeout: 20)
        }
      }
    }
  }
}
