import Glibc
import Posix
import TestSupport
import Testing

/// Processors that wait awake while requests come one upon the other.
extension MountTests {
  @Suite struct PromptProcessorsTests {
    /// Microseconds that a processor of this machine may take to wake up, as all who ask agree upon; nil where the
    /// daemon does not ask: it is not root's, or no guest's.
    private func latency() throws -> Int32? {
      let driver = try? ByteString(CPULatencyRequest.driver).read()
      guard geteuid() == 0, driver == Array("haltpoll\n".utf8) else { return nil }
      guard let device = try? Descriptor.open(CPULatencyRequest.device, .read) else { return nil }
      var latency: Int32 = 0
      guard read(device.rawValue, &latency, 4) == 4 else { return nil }
      return latency
    }

    @Test(
      "they do while programs walk and read, and not after it", .timeLimit(.minutes(3)), arguments: [1, 4])
    func walking(walkers count: Int) throws {
      let fixture = try Fixture(isFilled: false)
      let folders = (0..<200).map { ByteString("tree/folder\($0)") }
      try fixture.fill(folders: folders, files: 4)
      // Other mounts may have it so for a while; another program for ever, and then there is nothing to be seen.
      guard try latency() != nil, eventually(within: 30, { (try? latency() ?? 0) != 0 }) else { return }
      try withMount(fixture.setup) { mount in
        let isOver = Locked(false)
        let walkers = try (0..<count).map { number in
          ThreadHandle(
            try Thread(name: "walker \(number)") {
              while !isOver.withLock({ $0 }) {
                _ = try? Command.shell("find \"$1\" -type f -exec cat {} + >/dev/null", mount.point / "tree")
                  .run()
                _ = try? mount.command("invalidate")
              }
            })
        }
        #expect(eventually(within: 30) { (try? latency()) == 0 }, "while it walks")
        isOver.withLock { $0 = true }
        for walker in walkers { walker.join() }
        #expect(eventually(within: 30) { (try? latency() ?? 0) != 0 }, "after it, the mount still there")
      }
    }
  }
}
