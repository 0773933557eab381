import Glibc
import TestSupport
import Testing

extension MountTests.ExclusiveTests {
  /// The threads that take a change from inotify to the kernel's caches, which must not wait for a program that uses the
  /// processor on which they wake.
  @Suite(.enabled(if: (try? Command.shell("chrt -f 1 true").run().status) == 0)) struct UrgentThreadsTests {
    private static let policyField = 41

    /// The scheduling policies of a process's threads, by name.
    private func policies(of process: pid_t) throws -> [String: Int] {
      var policies: [String: Int] = [:]
      for thread in try ByteString("/proc/\(process)/task").names() {
        guard let text = try? ByteString("/proc/\(process)/task/\(thread.text)/stat").readText(),
          let open = text.firstIndex(of: "("), let close = text.lastIndex(of: ")")
        else { continue }
        // The fields from the third on follow the name.
        let fields = text[close...].split(separator: " ").dropFirst()
        let policy = fields[fields.startIndex + Self.policyField - 3]
        policies[String(text[text.index(after: open)..<close])] = Int(policy)
      }
      return policies
    }

    @Test(
      "wait in real time, before and after a change and much work, and no others do", .timeLimit(.minutes(1)))
    func policy() throws {
      let fixture = try Fixture()
      try withMount(fixture.setup) { mount in
        func expectUrgent() {
          #expect(
            eventually(within: 20) {
              let policies = (try? policies(of: mount.worker)) ?? [:]
              let urgent = policies.filter { $0.value == SCHED_FIFO }.keys
              return Set(urgent) == ["layer-watcher", "invalidator"]
            })
        }
        expectUrgent()
        try (fixture.main / "plain.txt").write("changed")
        try mount.barrier()
        expectUrgent()
        _ = try mount.point.list()
        for number in 0..<200 { try (fixture.main / ByteString("new\(number)")).write("new") }
        try mount.barrier()
        expectUrgent()
      }
    }
  }
}
