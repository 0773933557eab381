import Posix
import TestSupport
import Testing

/// Lines in writes that the kernel splits at page boundaries.
extension MountTests {
  @Suite struct WriteReassemblyTests {
    @Test(
      "lines are reassembled at any file offset", .timeLimit(.minutes(1)),
      arguments: [
        #"for n in {1..300}; do echo x:number-$n-of-all >> "$R" || echo failed; done"#,
        #"exec 3> "$R"; for n in {1..300}; do echo x:number-$n-of-all >&3 || echo failed; done"#,
        #"for n in {1..300}; do echo x:number-$n-of-all; done | dd of="$R" bs=1M status=none seek=100B"#,
        #"for n in {1..300}; do echo x:number-$n-of-all; done >> "$R""#,
      ])
    func crossingPages(script: String) throws {
      try withMount(routes: "route Any s:Text\n") { mount in
        let outcome = try mount.bash(script)
        #expect(outcome.status == 0 && outcome.outputText == "" && outcome.errorText == "")
        let urls = try mount.routesText().results.dropFirst().map(\.url)
        #expect(urls == (1...300).map { "x:number-\($0)-of-all" })
      }
    }

    @Test("lines are reassembled at every distance from the end of a page", .timeLimit(.minutes(1)))
    func everyDistance() throws {
      try withMount(routes: "route Any s:Text\n") { mount in
        let script = #"""
          import os
          f = os.open(path, os.O_WRONLY)
          for distance in range(1, 40):
              text = b"x:%d\n# a comment\nx:second-%d\n" % (distance, distance)
              if os.pwrite(f, text, 3 * 4096 - distance) != len(text):
                  print("short", distance)
          """#
        try mount.expectPython(script)
        let urls = try mount.routesText().results.dropFirst().map(\.url)
        #expect(urls == (1..<40).flatMap { ["x:\($0)", "x:second-\($0)"] })
      }
    }

    @Test(
      "a line rejected in its second part fails with errno and does not affect the next line",
      .timeLimit(.minutes(1)))
    func rejectedLine() throws {
      try withMount(routes: "route Any s:Text\n") { mount in
        let script = #"""
          exec 3> "$R"
          printf '%4091s\n' '#' >&3
          echo x://nobody/home >&3; echo "status $?"
          echo x:next >&3; echo "status $?"
          """#
        let outcome = try mount.bash(script)
        #expect(outcome.outputText == "status 1\nstatus 0\n")
        #expect(outcome.errorText == "bash: line 4: echo: write error: No such file or directory\n")
        let text = try mount.routesText()
        #expect(text.results.dropFirst().map(\.url) == ["x://nobody/home", "x:next"])
        #expect(text.summaries == ["applied", "rejected ENOENT", "posted Any"])
      }
    }

    @Test("a line without a newline that ends with the page is executed", .timeLimit(.minutes(1)))
    func endOfPage() throws {
      try withMount(routes: "route Any s:Text\n") { mount in
        let script = #"""
          import json, os
          f = os.open(path, os.O_RDWR)
          print(os.pwrite(f, b"x:1", 4093))
          print(json.loads(os.read(f, 65536).splitlines()[-1])["url"])
          print(os.pwrite(f, b"x:2", 4093))
          print(os.pwrite(f, b"x:3\n", 0))
          """#
        try mount.expectPython(script, prints: "3", "x:1", "3", "4")
        #expect(try mount.routesText().results.dropFirst().map(\.url) == ["x:1", "x:2", "x:3"])
        try mount.controlFile.overwrite(Array("x:4".utf8), at: 8189)
        #expect(try mount.lastResult().url == "x:4")
      }
    }
  }
}
