import Posix
import TestSupport
import Testing

/// Waiting for results with poll(2), select(2) and epoll(7).
extension MountTests {
  @Suite struct PollTests {
    /// Shared functions: `post(n)` posts the URL `x:n`, `later(n)` does so after 0.2 seconds, `last(f)` is the last result's
    /// number.
    private static let tools = #"""
      import json, os, select, threading, time
      def post(n):
          f = os.open(path, os.O_WRONLY)
          os.write(f, b"x:%d\n" % n)
          os.close(f)
      def later(n):
          timer = threading.Timer(0.2, post, [n])
          timer.start()
      def last(f):
          line = os.pread(f, 1 << 20, 0).splitlines()[-1]
          if not line.startswith(b"{"):
              return 0
          try:
              return json.loads(line)["sequence"]
          except ValueError:  # written meanwhile
              return last(f)
      f = os.open(path, os.O_RDONLY)

      """#

    /// Runs a script on a mount with a route for the URLs and without results.
    private func expect(
      _ script: String, prints lines: String..., location: SourceLocation = #_sourceLocation
    ) throws {
      let fixture = try Fixture()
      let routes = fixture.folder / "routes"
      try routes.write("route Any s:A\n")
      var setup = fixture.setup("routes=" + routes)
      setup.lifetime = 50
      try withMount(setup) { mount in
        let words = ["python3", "-c", ByteString("import sys; path = sys.argv[1]\n" + Self.tools + script)]
        let outcome = try Command(words + [mount.controlFile]).run(timeout: 40)
        #expect(outcome.errorText == "", sourceLocation: location)
        #expect(outcome.outputText.split(separator: "\n").map(String.init) == lines, sourceLocation: location)
      }
    }

    @Test("poll wakes once for each new result", .timeLimit(.minutes(1)))
    func poll() throws {
      let script = #"""
        p = select.poll()
        p.register(f, select.POLLIN | select.POLLPRI)
        print(p.poll(0), p.poll(100))
        for n in range(1, 6):
            start = time.monotonic()
            later(n)
            events = p.poll(10000)
            passed = time.monotonic() - start
            print(events == [(f, select.POLLIN | select.POLLPRI)], 0.15 < passed < 5, last(f), p.poll(100))
        """#
      try expect(
        script, prints: "[] []", "True True 1 []", "True True 2 []", "True True 3 []", "True True 4 []",
        "True True 5 []")
    }

    @Test("select wakes for reading and exceptions, and always for writing", .timeLimit(.minutes(1)))
    func select() throws {
      let script = #"""
        print(select.select([f], [f], [f], 0) == ([], [f], []), select.select([f], [], [f], 0.1))
        for n in range(1, 4):
            later(n)
            print(select.select([f], [], [f], 10) == ([f], [], [f]), last(f), select.select([f], [], [f], 0.1))
        """#
      try expect(
        script, prints: "True ([], [], [])", "True 1 ([], [], [])", "True 2 ([], [], [])",
        "True 3 ([], [], [])")
    }

    @Test("epoll wakes once for each result", .timeLimit(.minutes(1)), arguments: ["0", "select.EPOLLET"])
    func epoll(flags: String) throws {
      let script = """
        e = select.epoll()
        e.register(f, select.EPOLLIN | select.EPOLLPRI | \(flags))
        print(e.poll(0.1))
        for n in range(1, 6):
            later(n)
            print(e.poll(10) == [(f, select.EPOLLIN | select.EPOLLPRI)], last(f), e.poll(0.1))
        """
      try expect(script, prints: "[]", "True 1 []", "True 2 []", "True 3 []", "True 4 []", "True 5 []")
    }

    @Test("epoll reports results from before the file was added", .timeLimit(.minutes(1)))
    func epollEarlierResult() throws {
      let script = #"""
        post(1)
        e = select.epoll()
        e.register(f, select.EPOLLIN)
        print(e.poll(10) == [(f, select.EPOLLIN)], last(f), e.poll(0.1))
        later(2)
        print(e.poll(10) == [(f, select.EPOLLIN)], last(f), e.poll(0.1))
        """#
      try expect(script, prints: "True 1 []", "True 2 []")
    }

    @Test("poll reports a result from between open and poll, or between two polls", .timeLimit(.minutes(1)))
    func resultBetweenPolls() throws {
      let script = #"""
        p = select.poll()
        p.register(f, select.POLLIN)
        post(1)
        print(len(p.poll(10000)), last(f), p.poll(0))
        post(2)
        post(3)
        print(len(p.poll(10000)), last(f), p.poll(0))
        g = os.open(path, os.O_RDONLY)
        p.unregister(f)
        p.register(g, select.POLLIN)
        print(len(p.poll(10000)), last(g), p.poll(0))
        """#
      try expect(script, prints: "1 1 []", "1 3 []", "1 3 []")
    }

    @Test("all waiting processes and threads wake once for each result", .timeLimit(.minutes(1)))
    func manyPollers() throws {
      let script = #"""
        def wait(g, n):
            p = select.poll()
            p.register(g, select.POLLIN)
            count = 0
            for number in range(1, n + 1):
                while last(g) < number:
                    if p.poll(10000):
                        count += 1
            return count == n and p.poll(50) == []
        def run(g):
            good.append(wait(g, 3))
        children = []
        for _ in range(5):
            child = os.fork()
            if child == 0:
                os._exit(0 if wait(os.open(path, os.O_RDONLY), 3) else 1)
            children.append(child)
        good = []
        threads = [threading.Thread(target=run, args=[os.open(path, os.O_RDONLY)]) for _ in range(5)]
        for thread in threads:
            thread.start()
        for n in range(3):
            time.sleep(0.5)
            post(n)
        print([os.waitpid(child, 0)[1] for child in children])
        for thread in threads:
            thread.join()
        print(good)
        """#
      try expect(script, prints: "[0, 0, 0, 0, 0]", "[True, True, True, True, True]")
    }

    @Test("alternating poll and read sees every result", .timeLimit(.minutes(1)))
    func everyResult() throws {
      let script = #"""
        def write():
            w = os.open(path, os.O_WRONLY)
            for n in range(800):
                os.write(w, b"x:%d\n" % n)
                if n % 7 == 0:
                    time.sleep(0.001 * (n % 5))
        p = select.poll()
        p.register(f, select.POLLIN)
        writer = threading.Thread(target=write)
        writer.start()
        seen = 0
        while seen < 800:
            if not p.poll(10000):
                print("asleep at", seen)
                break
            seen = last(f)
        writer.join()
        # The last results may have been read before their wake-up.
        late = 0
        while p.poll(50):
            late += 1
            seen = last(f)
        print(seen, late < 4)
        """#
      try expect(script, prints: "800 True")
    }

    @Test("poll on other files is always ready", .timeLimit(.minutes(1)))
    func otherFiles() throws {
      let script = #"""
        g = os.open(os.path.dirname(path) + "/plain.txt", os.O_RDONLY)
        p = select.poll()
        p.register(g, select.POLLIN)
        print(p.poll(0) == [(g, select.POLLIN)], p.poll(0) == [(g, select.POLLIN)])
        """#
      try expect(script, prints: "True True")
    }

    @Test("an open control file without a poll keeps the mount busy", .timeLimit(.minutes(1)))
    func openFileStaysBusy() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.controlFile.withOpen(0) { _ in
          let outcome = try Command([try Binary.underTest(), "unmount", mount.point]).run(timeout: 20)
          #expect(outcome.status == 1 && outcome.errorText.contains("busy"))
        }
      }
    }
  }
}
