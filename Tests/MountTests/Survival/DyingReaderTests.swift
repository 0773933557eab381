import Glibc
import TestSupport
import Testing

/// Processor 0, which a loop in real time keeps from all other threads.
private enum OccupiedProcessor {
  static var isSupported: Bool {
    let commands = ["chrt -f 10 taskset -c 0 true", "taskset -c 1 true"]
    return commands.allSatisfy { (try? Command.shell($0).run().status) == 0 }
  }

  /// Starts the loop, which ends after 0.5 s at the latest.
  static func occupy() throws -> Child {
    let limits: [ByteString] = ["prlimit", "--rttime=500000", "chrt", "-f", "10", "taskset", "-c", "0"]
    let child = try Child(Command(limits + ["sh", "-c", "while :; do :; done"]))
    #expect(eventually(within: 20) { (try? ByteString("/proc/\(child.pid)/comm").readText()) == "sh\n" })
    return child
  }
}

/// A killed worker's thread that gets no processor to end on, while the successor starts.
extension MountTests.ExclusiveTests {
  @Suite(.enabled(if: OccupiedProcessor.isSupported)) struct DyingReaderTests {
    private func threads(of process: pid_t) -> [String] {
      ((try? ByteString("/proc/\(process)/task").names()) ?? []).map(\.text)
    }

    private func read(_ file: String, of thread: String) -> String {
      (try? ByteString("/proc/\(thread)/\(file)").readText()) ?? ""
    }

    private func isReader(_ thread: String) -> Bool { read("comm", of: thread).hasPrefix("request") }

    /// Confines the threads that read requests to processor 0, the others and the holder, with its next worker, to
    /// another one. Waits until a thread reads.
    private func confineReaders(of worker: pid_t, _ holder: pid_t) throws {
      for thread in threads(of: worker) + ["\(holder)"] {
        try Command("taskset", "-p", "-c", isReader(thread) ? "0" : "1", thread).check()
      }
      #expect(
        eventually(within: 20) {
          threads(of: worker).contains { read("wchan", of: $0) == "fuse_dev_do_read" }
        })
    }

    @Test("a request that it takes after the successor's start is answered", .timeLimit(.minutes(1)))
    func lateReader() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        _ = try mount.point.status()
        let former = mount.worker
        try #require(former != mount.process.pid, "there is no holder")
        try confineReaders(of: former, mount.process.pid)
        let loop = try OccupiedProcessor.occupy()
        kill(former, SIGKILL)
        _ = try mount.report()
        let successor = mount.worker
        kill(successor, SIGSTOP)
        #expect(
          eventually(within: 20) {
            threads(of: successor).filter(isReader).allSatisfy { read("wchan", of: $0) == "do_signal_stop" }
          })
        // If the former worker's thread still lives, nothing else takes this request.
        let caller = try Child(Command(["stat", mount.point / "plain.txt"]))
        #expect(eventually(within: 20) { read("wchan", of: "\(caller.pid)") == "request_wait_answer" })
        try loop.kill()
        #expect(eventually(within: 20) { threads(of: former).count < 2 })
        kill(successor, SIGCONT)
        let isAnswered = eventually(within: 20) { caller.status() != nil }
        // The next successor has it repeated: without a reply the caller cannot end.
        if !isAnswered { kill(successor, SIGKILL) }
        #expect(isAnswered)
      }
    }
  }
}
