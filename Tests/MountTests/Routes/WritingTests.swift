import Posix
import TestSupport
import Testing

/// Ways to write to the control file.
extension MountTests {
  @Suite struct WritingTests {
    /// Mounts with a route for `x:TEXT`, set by an option so that there is no result.
    private func withRoute(_ body: (Mount) throws -> Void) throws {
      let fixture = try Fixture()
      let routes = fixture.folder / "routes"
      try routes.write("route Any s:Text\n")
      let setup = fixture.setup("routes=" + routes)
      try withMount(setup, body)
    }

    @Test(
      "shell redirections and tools write lines",
      .timeLimit(.minutes(1)),
      arguments: [
        (#"echo x:1 > "$R""#, ["x:1"]),
        (#"echo x:1 >> "$R"; echo x:2 >> "$R""#, ["x:1", "x:2"]),
        (#"echo x:1 >| "$R""#, ["x:1"]),
        (#"printf x:1 > "$R""#, ["x:1"]),
        (#"printf 'x:1\nx:2\r\nx:3' | dd of="$R" bs=4k status=none"#, ["x:1", "x:2", "x:3"]),
        (#"echo x:1 | tee "$R" "$R" > /dev/null"#, ["x:1", "x:1"]),
        (#"echo x:1 | tee -a "$R" > /dev/null"#, ["x:1"]),
        (
          #"printf 'x:1\nx:2\nx:3\nx:4\n' | dd of="$R" bs=8 oflag=append conv=notrunc status=none"#,
          ["x:1", "x:2", "x:3", "x:4"]
        ),
        (#"printf 'x:1\nx:2\n' | dd of="$R" bs=4 seek=1000 conv=notrunc status=none"#, ["x:1", "x:2"]),
        (#"exec 3<> "$R"; echo x:1 >&3; echo x:2 >&3"#, ["x:1", "x:2"]),
        (#"exec 3> "$R"; for i in 1 2 3; do echo x:$i >&3; done"#, ["x:1", "x:2", "x:3"]),
        (#"cat <<< x:1 > "$R""#, ["x:1"]),
        (#": > "$R"; true > "$R"; echo x:1 > "$R""#, ["x:1"]),
        (#"truncate -s 0 "$R"; truncate -s 5000 "$R"; echo x:1 >> "$R""#, ["x:1"]),
      ])
    func shell(script: String, urls: [String]) throws {
      try withRoute { mount in
        let outcome = try mount.bash("set -e -o pipefail\n" + script)
        #expect(outcome.status == 0, "\(outcome.errorText)")
        let text = try mount.routesText()
        #expect(text.results.map(\.url) == urls)
        #expect(text.summaries == urls.map { _ in "posted Any" })
      }
    }

    @Test("blank lines, comments and results are ignored; line endings may vary", .timeLimit(.minutes(1)))
    func ignoredLines() throws {
      try withRoute { mount in
        try mount.writeControl("\n\r\n  \t \n# x:1\n  # x:2\n{\"sequence\":1}\n{ not even JSON\n{\n#")
        #expect(try mount.routesText().results.isEmpty)
        try mount.writeControl("\n# one\n  x:1  \r\n\n{\"sequence\":9}\n\tx:2")
        #expect(try mount.routesText().results.map(\.url) == ["x:1", "x:2"])
        // Writing the whole file back fails only because its route already exists.
        let text = try mount.controlFile.readText()
        let lines = text.split(separator: "\n").dropFirst().joined(separator: "\n")
        try mount.writeControl(lines + "\n")
        #expect(try mount.routesText().results.count == 2)
        try expectErrno(Errno(rawValue: 17)) { try mount.writeControl(text) }  // EEXIST
      }
    }

    @Test("the file offset of a write is ignored", .timeLimit(.minutes(1)))
    func offsets() throws {
      try withRoute { mount in
        for (number, offset) in [0, 1, 4095, 4096, 1 << 20, 1 << 40].enumerated() {
          try mount.controlFile.overwrite(Array("x:\(number)\n".utf8), at: offset)
        }
        let text = try mount.routesText()
        #expect(text.results.map(\.url) == (0..<6).map { "x:\($0)" })
        #expect(try mount.controlFile.status().size < 2000)
      }
    }

    @Test(
      "an invalid line ends its write: earlier lines are executed, later ones are not",
      .timeLimit(.minutes(1)))
    func partialWrite() throws {
      try withRoute { mount in
        let script = #"""
          import os
          f = os.open(path, os.O_WRONLY)
          lines = b"x:1\n# c\nx:2\n", b"x://no/route\n", b"x:3\nx:4\n"
          print(os.write(f, b"".join(lines)) == len(lines[0]))
          print(os.write(f, b"\n\n" + lines[1]))
          for text in lines[1] + lines[2], b"%", b"x://no/route":
              try:
                  os.write(f, text)
              except OSError as error:
                  print(error.strerror)
          print(os.write(f, lines[2]) == len(lines[2]))
          """#
        try mount.expectPython(
          script, prints: "True", "2", "No such file or directory", "Invalid argument",
          "No such file or directory", "True")
        let text = try mount.routesText()
        #expect(
          text.results.map(\.url) == ["x:1", "x:2"] + Array(repeating: "x://no/route", count: 3) + [
            "%", "x://no/route", "x:3", "x:4",
          ])
      }
    }

    @Test("all lines of a 20,000-byte write and of a writev are executed", .timeLimit(.minutes(1)))
    func largeWrite() throws {
      try withRoute { mount in
        let script = #"""
          import os
          f = os.open(path, os.O_WRONLY | os.O_APPEND)
          lines = b"".join(b"x:%d-%s\n" % (n, b"a" * 190) for n in range(100))
          print(len(lines) > 19000, os.write(f, lines) == len(lines))
          print(os.writev(f, [b"x:", b"in", b"-pieces", b"\nx:2\n"]))
          """#
        try mount.expectPython(script, prints: "True True", "16")
        let text = try mount.routesText()
        #expect(text.results.count == 102)
        #expect(text.results.suffix(2).map(\.url) == ["x:in-pieces", "x:2"])
      }
    }

    @Test("one descriptor can write and read", .timeLimit(.minutes(1)))
    func oneDescriptor() throws {
      try withRoute { mount in
        let script = #"""
          import json, os
          f = os.open(path, os.O_RDWR)
          for n in range(50):
              size = os.fstat(f).st_size
              os.write(f, b"x:%d\n" % n)
              line = os.pread(f, 65536, size)
              result = json.loads(line)
              if result["url"] != "x:%d" % n or result["sequence"] != n + 1:
                  print(line)
          try:
              os.write(f, b"x://no/route\n")
          except FileNotFoundError:
              print(json.loads(os.pread(f, 65536, size + len(line)))["errno"])
          g = os.open(path, os.O_RDWR | os.O_TRUNC)
          print(os.fstat(g).st_size == os.fstat(f).st_size > 50 * 50)
          """#
        try mount.expectPython(script, prints: "ENOENT", "True")
      }
    }

    @Test("removing, renaming and linking the control file fails", .timeLimit(.minutes(1)))
    func otherChanges() throws {
      try withRoute { mount in
        let script = #"""
          rm -f "$R"; echo $?
          mv "$R" "$M/other"; echo $?
          ln "$R" "$M/other"; echo $?
          mkdir "$R"; echo $?
          """#
        let outcome = try mount.bash(script)
        #expect(outcome.outputText == "1\n1\n1\n1\n")
        #expect(try mount.routesText().routes == ["route Any s:Text"])
      }
    }
  }
}
