import Glibc
import Posix
import TestSupport
import Testing

/// Many at once at the control file.
extension MountTests {
  @Suite struct ConcurrentRoutesTests {
    private static let writers = 64
    private static let urls = 12

    @Test(
      "64 writers: no result is lost, mixed or twice, and a listener gets them all", .timeLimit(.minutes(2)))
    func writers() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.say("route Any s:A/i:B/i:C\n")
        let listener = try mount.listen()
        let isStopping = Locked(false)
        let readers = try (0..<2).map { number in
          try Worker("reader \(number)", until: isStopping) { worker in
            if try Self.wholeText(mount) == nil { throw TestFailure("never whole") }
            worker.beat()
          }
        }
        // A shell each, that opens the file anew for every URL. Who appends while others read may be told to
        // do so again.
        let script = #"""
          append() {
            local said
            until said=$({ echo "$1" >> "$R"; } 2>&1); do
              [[ $said == *'Resource temporarily unavailable' ]] || echo "$said"
            done
          }
          for writer in {1..64}; do
            (
              for url in {1..12}; do
                if ((writer % 4)); then
                  echo "x://of-writer/$writer/$url" > "$R" || echo failed
                else
                  append "x://of-writer/$writer/$url"
                fi
              done
            ) &
          done
          wait
          """#
        let outcome = try mount.bash(script)
        #expect(outcome.status == 0 && outcome.outputText == "" && outcome.errorText == "")
        isStopping.withLock { $0 = true }
        #expect(eventually(within: 20) { readers.allSatisfy(\.isOver) })
        for reader in readers { #expect(reader.problem == nil && reader.beats > 0, "\(reader.name)") }

        let count = Self.writers * Self.urls
        let text = try mount.routesText()
        #expect(text.results.map(\.sequence) == Array(1...UInt64(count + 1)))
        let expected = (1...Self.writers).flatMap { writer in
          (1...Self.urls).map { "x://of-writer/\(writer)/\($0)" }
        }
        let urls = text.results.dropFirst().map(\.url)
        let (lost, strange) = (Set(expected).subtracting(urls), Set(urls).subtracting(expected))
        #expect(lost.isEmpty && strange.isEmpty && urls.count == expected.count, "\(lost) \(strange)")
        for result in text.results.dropFirst() {
          let numbers = result.url.split(separator: "/").suffix(2).compactMap { Double($0) }
          let bound = ["B", "C"].compactMap { result.userInfo?[$0] }
          if bound != numbers.map({ .number($0) }) { Issue.record("\(result.url) binds \(bound)") }
        }
        let isComplete = try listener.lines(count) == Array(text.lines.dropFirst())
        #expect(isComplete, "the listener got other lines")
        #expect(listener.errorText == "")
      }
    }

    @Test(
      "threads that write through one file and through many", .timeLimit(.minutes(1)), arguments: [1, 16])
    func threads(files: Int) throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.say("route Any s:A\n")
        let open = try (0..<files).map { _ in try mount.routes.call("open") { Glibc.open($0, O_WRONLY) } }
        defer { for file in open { close(file) } }
        let failures = Locked(0)
        let running = Locked(Self.writers)
        for writer in 0..<Self.writers {
          _ = try Thread(name: "writer \(writer)") {
            for number in 0..<Self.urls {
              let line = Array("x:\(writer)-\(number)\n".utf8)
              if write(open[writer % files], line, line.count) != line.count { failures.withLock { $0 += 1 } }
            }
            running.withLock { $0 -= 1 }
          }
        }
        #expect(eventually(within: 40) { running.withLock { $0 } == 0 })
        #expect(failures.withLock { $0 } == 0)
        let text = try mount.routesText()
        let expected = (0..<Self.writers).flatMap { writer in (0..<Self.urls).map { "x:\(writer)-\($0)" } }
        #expect(Set(text.results.dropFirst().map(\.url)) == Set(expected))
        // Each writer's own are in the order in which it wrote them.
        for writer in 0..<Self.writers {
          let own = text.results.map(\.url).filter { $0.hasPrefix("x:\(writer)-") }
          #expect(own == (0..<Self.urls).map { "x:\(writer)-\($0)" })
        }
      }
    }

    @Test("writers, readers, walkers and those who wait never hold each other up", .timeLimit(.minutes(1)))
    func noDeadlock() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.say("route Any s:A\n")
        let listener = try mount.listen()
        let isStopping = Locked(false)
        let (point, changing) = (mount.point, fixture.substitution / "changing")
        var workers: [Worker] = []
        func add(_ name: String, _ body: @escaping @Sendable (Worker) throws -> Void) throws {
          workers.append(try Worker(name, until: isStopping, body))
        }
        for number in 0..<2 {
          try add("writer \(number)") { _ in
            try mount.say("x:\(number)\nmatch x:a\n# comment\nroute R\(number) scheme\(number)://i:A/i:B\n")
            try mount.say("unroute R\(number)\n")
          }
          try add("barrier \(number)") { _ in try mount.say("x:1\nbundlefs:///sync\nx:2\n") }
          try add("reader \(number)") { _ in _ = try mount.routes.read() }
          try add("walker \(number)") { _ in
            try Command("ls", "-laR", point.text).run(timeout: 20)
            try Command.shell("find \"$1\" -type f -exec cat {} + > /dev/null", point).run(timeout: 20)
          }
        }
        try add("invalidation") { _ in try mount.say("bundlefs:///invalidate\n") }
        try add("changer") { _ in
          try changing.write("\(Clock.now)")
          try changing.remove()
        }
        let end = Clock.now + 5
        var stuck: [Worker] = []
        while Clock.now < end, stuck.isEmpty, workers.allSatisfy({ !$0.isOver }) {
          Clock.sleep(0.1)
          stuck = workers.filter { $0.silence > 4 }
        }
        isStopping.withLock { $0 = true }
        if !eventually(within: 10, { workers.allSatisfy(\.isOver) }) {
          for worker in workers where !worker.isOver { Issue.record("\(worker.name) hangs") }
          mount.abandon()
          throw TestFailure("the mount hangs")
        }
        for worker in workers {
          #expect(worker.problem == nil && worker.beats > 1, "\(worker.name): \(worker.beats)")
        }
        #expect(stuck.isEmpty && listener.status() == nil)
        // The last line may be on its way.
        #expect(try listener.lines(2).dropLast().allSatisfy { (try? RoutedResult($0)) != nil })
      }
    }

    /// The file, read until it is whole: reading takes several requests, between which it moves on.
    /// - Returns: nil if that never was so.
    private static func wholeText(_ mount: Mount) throws -> RoutesText? {
      for _ in 0..<100 {
        if let text = try? RoutesText(try mount.routes.read()) { return text }
      }
      return nil
    }
  }
}
