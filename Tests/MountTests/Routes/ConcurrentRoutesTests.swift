import Glibc
import Posix
import TestSupport
import Testing

/// Concurrent use of the control file.
extension MountTests {
  @Suite struct ConcurrentRoutesTests {
    private static let writers = 64
    private static let urls = 12

    @Test(
      "with 64 writers no result is lost, torn or duplicated, and a listener gets them all",
      .timeLimit(.minutes(2)))
    func writers() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.writeControl("route Any s:A/i:B/i:C\n")
        let listener = try mount.listen()
        let isStopping = Locked(false)
        let readers = try (0..<2).map { number in
          try LoopThread("reader \(number)", until: isStopping) { worker in
            guard try Self.readsWholeText(mount) else { throw TestFailure("the file was never read whole") }
            worker.recordProgress()
          }
        }
        // Each writer is a shell that reopens the file for every URL. Appending while others read may fail with
        // EAGAIN, and is then repeated.
        let script = #"""
          append() {
            local message
            until message=$({ echo "$1" >> "$R"; } 2>&1); do
              [[ $message == *'Resource temporarily unavailable' ]] || echo "$message"
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
        #expect(eventually(within: 20) { readers.allSatisfy(\.isFinished) })
        for reader in readers {
          let message = "\(reader.name): \(String(describing: reader.failure)), \(reader.iterations)"
          #expect(reader.failure == nil && reader.iterations > 0, "\(message)")
        }

        let count = Self.writers * Self.urls
        let text = try mount.routesText()
        #expect(text.results.map(\.sequence) == Array(1...UInt64(count + 1)))
        let expected = (1...Self.writers).flatMap { writer in
          (1...Self.urls).map { "x://of-writer/\(writer)/\($0)" }
        }
        let urls = text.results.dropFirst().map(\.url)
        let (lost, unexpected) = (Set(expected).subtracting(urls), Set(urls).subtracting(expected))
        #expect(lost.isEmpty && unexpected.isEmpty && urls.count == expected.count, "\(lost) \(unexpected)")
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
      "threads write through one descriptor and through many", .timeLimit(.minutes(1)), arguments: [1, 16])
    func threads(files: Int) throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.writeControl("route Any s:A\n")
        let open = try (0..<files).map { _ in try mount.controlFile.call("open") { Glibc.open($0, O_WRONLY) }
        }
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
        // Each writer's results are in order.
        for writer in 0..<Self.writers {
          let own = text.results.map(\.url).filter { $0.hasPrefix("x:\(writer)-") }
          #expect(own == (0..<Self.urls).map { "x:\(writer)-\($0)" })
        }
      }
    }

    @Test("writers, readers, walkers and listeners never block each other", .timeLimit(.minutes(1)))
    func noDeadlock() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        try mount.writeControl("route Any s:A\n")
        let listener = try mount.listen()
        let isStopping = Locked(false)
        let (point, changing) = (mount.point, fixture.substitution / "changing")
        var workers: [LoopThread] = []
        func add(_ name: String, _ body: @escaping @Sendable (LoopThread) throws -> Void) throws {
          workers.append(try LoopThread(name, until: isStopping, body))
        }
        for number in 0..<2 {
          try add("writer \(number)") { _ in
            try mount.writeControl(
              "x:\(number)\nmatch x:a\n# comment\nroute R\(number) scheme\(number)://i:A/i:B\n")
            try mount.writeControl("unroute R\(number)\n")
          }
          try add("barrier \(number)") { _ in try mount.writeControl("x:1\nbundlefs:///sync\nx:2\n") }
          try add("reader \(number)") { _ in _ = try mount.controlFile.read() }
          try add("walker \(number)") { _ in
            try Command("ls", "-laR", point.text).run(timeout: 20)
            try Command.shell("find \"$1\" -type f -exec cat {} + > /dev/null", point).run(timeout: 20)
          }
        }
        try add("invalidation") { _ in try mount.writeControl("bundlefs:///invalidate\n") }
        try add("changer") { _ in
          try changing.write("\(Clock.now)")
          try changing.remove()
        }
        let stuck = LoopThread.waitForStall(of: workers, until: Clock.now + 5, limit: 4)
        isStopping.withLock { $0 = true }
        if !eventually(within: 10, { workers.allSatisfy(\.isFinished) }) {
          for worker in workers where !worker.isFinished { Issue.record("\(worker.name) is blocked") }
          mount.abandon()
          throw TestFailure("the mount hangs")
        }
        for worker in workers {
          #expect(worker.failure == nil && worker.iterations > 1, "\(worker.name): \(worker.iterations)")
        }
        #expect(stuck.isEmpty && listener.status() == nil)
        // The last line may be incomplete.
        #expect(try listener.lines(2).dropLast().allSatisfy { (try? RoutedResult($0)) != nil })
      }
    }

    /// Rereads the file until it is consistent: it may change between the requests of one read.
    /// - Returns: whether it was within 20 seconds.
    private static func readsWholeText(_ mount: Mount) throws -> Bool {
      try eventually(within: 20) {
        let text = try mount.controlFile.read()
        return (try? RoutesText(text)) != nil
      }
    }
  }
}
