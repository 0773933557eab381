import Glibc
import Posix
import TestSupport
import Testing

/// `bundlefs run`: what the command sees, and what is seen of it.
extension MountTests {
  @Suite struct RunTests {
    typealias Caller = PrivateRun.Caller

    @Test(
      "the command sees the merged view, and nothing is mounted outside", .timeLimit(.minutes(1)),
      arguments: Caller.allCases)
    func view(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        let script = #"""
          cat "$1/plain.txt" "$1/replaced.txt" "$1/folder/added.txt"
          id -u; id -g; echo problem >&2
          : > "$3/ready"; until [ -e "$3/go" ]; do sleep 0.02; done; exit 7
          """#
        let scratch = try run.scratch()
        let child = try Child(try run.shell(script))
        let isReady = eventually(within: 20) { (scratch / "ready").exists }
        #expect(isReady, "\(child.errorText)")
        #expect(try MountTable.entry(at: run.fixture.main) == nil)
        #expect(try (run.fixture.main / "replaced.txt").readText() == "main's replaced\n")
        for user in Set([nil, run.user]) {
          let listed = try ListedMount.list(below: run.fixture.main, program: run.program, user: user)
          #expect(listed.map(\.state) == ["alive"] && listed.first?.process?.id == child.pid)
          #expect(listed.first?.process?.command == "bash" && listed.first?.user == Int(run.user ?? 0))
          let layers = [run.fixture.substitution.text, run.fixture.main.text]
          #expect(listed.first?.layers?.map(\.path) == layers)
        }
        try (scratch / "go").write("")
        let outcome = try child.wait(timeout: 20)
        let id = "\(run.user ?? 0)\n"
        #expect(outcome.status == 7 && outcome.errorText == "problem\n")
        let content = "main's plain\nsubstitution's replaced, longer\nsubstitution's added\n"
        #expect(outcome.outputText == content + id + id)
      }
    }

    @Test(
      "commands reach the mount from inside", .timeLimit(.minutes(1)), arguments: Caller.allCases)
    func commands(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        let script = #"""
          set -e
          "$2" status "$1" | grep -c "^layers"
          "$2" layers "$1" set ""
          cat "$1/replaced.txt"
          "$2" layers "$1" add "${1%main}substitution"
          cat "$1/replaced.txt"
          echo 'route Here l:(word)Kind/s:Name' > "$1/.routes"
          "$2" route "$1" app://word/x | grep -o '"outcome":"[a-z]*"'
          "$2" sync "$1"
          "$2" upgrade "$1"
          "$2" status "$1" | grep -o "upgrades: 1"
          cat "$1/replaced.txt"
          """#
        let outcome = try run.shell(script).run()
        let both = "main's replaced\nsubstitution's replaced, longer\n"
        let expected =
          "1\n" + both + "\"outcome\":\"posted\"\nupgrades: 1\nsubstitution's replaced, longer\n"
        #expect(outcome.status == 0 && outcome.outputText == expected, "\(outcome.errorText)")
      }
    }

    @Test("a known file that is replaced before it is read can be read", .timeLimit(.minutes(2)))
    func replacedBeforeRead() throws {
      try PrivateRun.with(.root) { run in
        let scratch = try run.scratch()
        let child = try Child(try run.shell(#": > "$3/ready"; until [ -e "$3/go" ]; do sleep 0.02; done"#))
        #expect(eventually(within: 20) { (scratch / "ready").exists }, "\(child.errorText)")
        let view = ByteString("/proc/\(child.pid)/root") / run.fixture.main
        for round in 0..<100 {
          let name = ByteString("file\(round)")
          try (run.fixture.substitution / name).write("a")
          let isKnown = try eventually(within: 20) {
            try errorNumber { _ = try (view / name).status() } == nil
          }
          #expect(isKnown)
          try (run.fixture.substitution / name).replace("another size\n")
          // The first look may come before the event.
          let isSeen = eventually(within: 20) { (try? (view / name).readText()) == "another size\n" }
          #expect(isSeen, "\(name)")
        }
        try (scratch / "go").write("")
        #expect(try child.wait(timeout: 20).status == 0)
      }
    }

    @Test("changes in the layers show, and a writable mount takes some", .timeLimit(.minutes(1)))
    func changes() throws {
      try PrivateRun.with(.user) { run in
        let (main, substitution) = (run.fixture.main, run.fixture.substitution)
        // Files of groups that the user namespace lacks take no changes.
        try Command("chgrp", "-R", "\(UnprivilegedTests.nobody)", main.text, substitution.text).check()
        let script = #"""
          cat "$0/plain.txt"; echo changed > "$1/plain.txt"; "$2" sync "$0"; cat "$0/plain.txt"
          mkdir "$0/only/new"; echo text > "$0/only/new/file"; rm "$0/folder/inner.txt"; ls "$0/folder"
          """#
        let words: [ByteString] = [
          run.program, "run", "-o", "writable,substitution=" + substitution, main, "--",
          "bash", "-c", ByteString(script), main, substitution, run.program,
        ]
        let outcome = try run.asCaller(Command(words)).run()
        #expect(outcome.status == 0, "\(outcome.errorText)")
        #expect(outcome.outputText == "main's plain\nchanged\nadded.txt\nboth.txt\n")
        #expect(try (substitution / "only" / "new" / "file").readText() == "text\n")
        #expect((main / "folder" / "inner.txt").exists && !(main / "only" / "new").exists)
      }
    }

    @Test("a user reads and executes root's files, and changes none", .timeLimit(.minutes(1)))
    func foreignFiles() throws {
      try PrivateRun.with(.user) { run in
        let program = run.fixture.main / "program"
        try program.write("#!/bin/sh\necho ran\n")
        try program.setMode(0o755)
        try (run.fixture.main / "secret").write("root's own")
        try (run.fixture.main / "secret").setMode(0o600)
        let script = #"""
          "$1/program"; cat "$1/program" | head -n 1; stat -c %U "$1/program"; cat "$1/secret" 2>&1 | grep -o denied
          echo > "$1/program"
          """#
        let outcome = try run.shell(script).run()
        #expect(outcome.outputText == "ran\n#!/bin/sh\nnobody\ndenied\n", "\(outcome.errorText)")
        #expect(outcome.status != 0)
      }
    }

    @Test(
      "the working directory in MAIN shows the merged view", .timeLimit(.minutes(1)),
      arguments: Caller.allCases)
    func workingDirectory(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        let script = #"cd "$0" && exec "$@""#
        let words = run.words(["bash", "-c", "pwd; cat added.txt ../replaced.txt"])
        let folder = run.fixture.main / "folder"
        let outcome = try run.asCaller(Command(["bash", "-c", ByteString(script), folder] + words)).run()
        #expect(outcome.status == 0, "\(outcome.errorText)")
        #expect(
          outcome.outputText == "\(folder)\nsubstitution's added\nsubstitution's replaced, longer\n")
      }
    }

    @Test(
      "--at mounts elsewhere, and MAIN stays as it is", .timeLimit(.minutes(1)), arguments: Caller.allCases)
    func elsewhere(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        let fixture = run.fixture
        var words = run.words(["cat", fixture.point / "replaced.txt", fixture.main / "replaced.txt"])
        words.insert(contentsOf: ["--at", fixture.point], at: 2)
        let outcome = try run.asCaller(Command(words)).run()
        #expect(outcome.outputText == "substitution's replaced, longer\nmain's replaced\n")
        #expect(try MountTable.entry(at: fixture.point) == nil)
      }
    }

    @Test("works as the interpreter of a script", .timeLimit(.minutes(1)), arguments: Caller.allCases)
    func interpreter(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        let (fixture, script) = (run.fixture, run.fixture.folder / "script")
        try script.write(
          """
          #!/usr/bin/env -S \(run.program) run -o substitution=\(fixture.substitution) \(fixture.main) -- bash
          cat "\(fixture.main)/replaced.txt"
          echo "$# $1"
          """)
        try script.setMode(0o755)
        let outcome = try run.asCaller(Command([script, "an argument", "b"])).run()
        #expect(
          outcome.outputText == "substitution's replaced, longer\n2 an argument\n", "\(outcome.errorText)")
      }
    }

    @Test("one runs in another, which is a layer of it", .timeLimit(.minutes(1)), arguments: Caller.allCases)
    func nested(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        let top = try run.fixture.folder.folder("top")
        try (top / "plain.txt").write("top's plain\n")
        let inner = run.words(
          ["cat", run.fixture.main / "plain.txt", run.fixture.main / "replaced.txt"], substitution: top)
        let outcome = try run.asCaller(Command(run.words(inner))).run()
        #expect(outcome.status == 0, "\(outcome.errorText)")
        #expect(outcome.outputText == "top's plain\nsubstitution's replaced, longer\n")
      }
    }

    @Test(
      "ten run side by side, each with its own layers", .timeLimit(.minutes(2)), arguments: Caller.allCases)
    func ten(caller: Caller) throws {
      try PrivateRun.with(caller) { run in
        let scratch = try run.scratch()
        // Each waits until all are there.
        let script = #"""
          : > "$1/ready-$2"; until [ "$(ls "$1" | wc -l)" = 10 ]; do sleep 0.05; done; cat "$0/plain.txt"
          """#
        let children = try (0..<10).map { number in
          let layer = try run.fixture.folder.folder(ByteString("layer\(number)"))
          try (layer / "plain.txt").write("content \(number)\n")
          let words: [ByteString] = [
            "bash", "-c", ByteString(script), run.fixture.main, scratch, ByteString("\(number)"),
          ]
          return try Child(run.asCaller(Command(run.words(words, substitution: layer))))
        }
        for (number, child) in children.enumerated() {
          let outcome = try child.wait(timeout: 60)
          #expect(outcome.status == 0 && outcome.outputText == "content \(number)\n", "\(outcome.errorText)")
        }
      }
    }
  }
}
