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

    /// Writes the URL in `$U` and then `x:end`.
    private static let writers = [
      #"echo "$U" > "$R"; echo x:end > "$R""#, #"echo "$U" >> "$R"; echo x:end >> "$R""#,
      #"printf '%s\n' "$U" x:end >> "$R""#,
      #"zsh -fc 'echo "$U" >> "$1"; echo x:end >> "$1"' zsh "$R""#,
      #"fish --no-config -c 'echo $U >> $argv[1]; echo x:end >> $argv[1]' "$R""#,
      #"fish --no-config -c 'printf "%s\n" $U x:end > $argv[1]' "$R""#,
      #"printf '%s\n' "$U" x:end | sort -r >> "$R""#, #"printf '%s\n' "$U" x:end | awk 1 > "$R""#,
      #"printf '%s\n' "$U" x:end | dd bs=512 status=none >> "$R""#,
      #"python3 -c 'import os, sys; f = open(sys.argv[1], "a"); print(os.environ["U"], file=f); print("x:end", file=f)' "$R""#,
    ]

    @Test(
      "a URL that a buffer cuts arrives whole, or not at all", .timeLimit(.minutes(1)),
      arguments: writers)
    func buffers(script: String) throws {
      try withMount(routes: "route Any s:Text\n") { mount in
        for length in [511, 512, 1024, 4096, 5000, 20_000, 65_536] {
          // Each part of it would be a URL, too.
          let url = "x:" + String(repeating: "z:", count: length / 2 - 1) + (length % 2 == 0 ? "" : "z")
          let outcome = try mount.bash("export U='\(url)'\n" + script)
          #expect(outcome.status == 0, "\(length): \(outcome.errorText)")
          let ends = try eventually(within: 5) { try mount.routesText().results.last?.url == "x:end" }
          let text = try mount.routesText()
          #expect(ends && text.results.suffix(2).map(\.url) == [url, "x:end"], "\(length)")
        }
        let posted = try mount.routesText().results.count
        _ = try mount.bash("export U=x:\(String(repeating: "z:", count: 35_000))\n" + script)
        let more = try mount.routesText().results.dropFirst(posted).filter { $0.outcome == "posted" }
        #expect(more.allSatisfy { $0.url == "x:end" })
      }
    }

    @Test("a line that seems cut is run once its program has closed the file", .timeLimit(.minutes(1)))
    func unfinishedLine() throws {
      try withMount(routes: "route Any s:Text\n") { mount in
        let url = "x:" + String(repeating: "a", count: 510)
        let script = #"""
          import os, time
          f = os.open(path, os.O_RDWR)
          line = b"x:" + 510 * b"a"
          print(os.write(f, line))
          time.sleep(0.3)
          print(len(os.pread(f, 1 << 20, 0).splitlines()))
          """#
        try mount.expectPython(script, prints: "512", "2")
        let isRun = try eventually(within: 10) { try mount.lastResult().url == url }
        #expect(isRun)
        let outcome = try mount.bash("printf %s \(url)b > $R; printf %s \(url) > $R")
        #expect(outcome.status == 0)
        let isRunAgain = try eventually(within: 10) {
          try mount.routesText().results.suffix(2).map(\.url) == [url + "b", url]
        }
        #expect(isRunAgain)
      }
    }

    @Test("threads of one process continue a line, other processes do not", .timeLimit(.minutes(1)))
    func threads() throws {
      try withMount(routes: "route Any s:Text\n") { mount in
        let script = #"""
          import os, threading
          f = os.open(path, os.O_WRONLY)
          os.write(f, b"x:" + 510 * b"a")
          if os.fork() == 0:
              os.pwrite(f, b"x:other\n", 512)
              os._exit(0)
          os.wait()
          rest = threading.Thread(target=os.write, args=[f, b"rest\n"])
          rest.start()
          rest.join()
          begin = threading.Thread(target=os.write, args=[f, b"x:b" + 509 * b"a"])
          begin.start()
          begin.join()
          os.write(f, b"rest\n")
          """#
        try mount.expectPython(script)
        let urls = try mount.routesText().results.dropFirst().map(\.url)
        let begun = ["x:" + String(repeating: "a", count: 510), "x:b" + String(repeating: "a", count: 509)]
        #expect(urls == ["x:other"] + begun.map { $0 + "rest" })
      }
    }

    @Test("a line is refused if its writer ends where the kernel splits a write", .timeLimit(.minutes(1)))
    func splitLine() throws {
      try withMount(routes: "route Any s:Text\n") { mount in
        let script = #"""
          import os, sys, subprocess
          comment = b"#" + (1 << 20) * b"a"
          def begin(line):
              return comment[:(1 << 20) - 1 - len(line)] + b"\n" + line
          f = os.open(path, os.O_WRONLY)
          # A program that continues has written all of it.
          print(os.write(f, begin(b"x:begin")), os.write(f, b"-and-end\n"))
          os.close(f)
          if os.fork() == 0:
              os.write(os.open(path, os.O_WRONLY), begin(b"unroute An"))
              os.kill(os.getpid(), 9)
          os.wait()
          """#
        try mount.expectPython(script, prints: "1048576 9")
        let isRefused = try eventually(within: 20) { try mount.lastResult().url == "unroute An" }
        #expect(isRefused)
        let text = try mount.routesText()
        #expect(text.results.suffix(2).map(\.url) == ["x:begin-and-end", "unroute An"])
        #expect(text.results.last?.errno == "EINVAL" && text.lines.last?.contains("ended before") == true)
      }
    }

    @Test("a writer of many lines can be killed, and no line is run after it", .timeLimit(.minutes(1)))
    func killedWriter() throws {
      let binary = try Binary.underTest()
      try withMount(routes: "route Any s:Text\n") { mount in
        let script = #"""
          import json, os, subprocess, sys
          child = subprocess.Popen([sys.executable, "-c", """if True:
              import os, sys
              os.write(os.open(sys.argv[1], os.O_WRONLY), b"".join(b"x:%d\\n" % n for n in range(400000)))
              """, path])
          # Until the first line has its result, which comes after that of the route.
          listen = ["\#(binary)", "listen", "\#(mount.point)", "--since", "1", "--count", "1"]
          subprocess.run(listen, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
          child.kill()
          child.wait()
          print(child.returncode)
          def newest():
              return json.loads(open(path, "rb").read().splitlines()[-1])["sequence"]
          before = newest()
          # Long enough to be continued by the thread that would run what is left.
          lines = 20000 * b"x:y\n"
          print(os.write(os.open(path, os.O_WRONLY), lines) == len(lines), newest() - before)
          """#
        try mount.expectPython(script, prints: "-9", "True 20000")
      }
    }
  }
}
