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
      let driver = try? ByteString(PromptProcessors.driver).read()
      guard geteuid() == 0, driver == Array("haltpoll\n".utf8) else { return nil }
      guard let device = try? Descriptor.open(PromptProcessors.device, .read) else { return nil }
      var latency: Int32 = 0
      guard read(device.rawValue, &latency, 4) == 4 else { return nil }
      return latency
    }

    @Test("they do while a program walks and reads, and not after it", .timeLimit(.minutes(2)))
    func walking() throws {
      let fixture = try Fixture(isFilled: false)
      let folders = (0..<200).map { ByteString("tree/folder\($0)") }
      try fixture.fill(folders: folders, files: 4)
      guard try latency() != nil else { return }
      // Other mounts may have it so for a while.
      #expect(eventually(within: 30) { (try? latency() ?? 0) != 0 }, "before")
      try withMount(fixture.setup) { mount in
        let isOver = Locked(false)
        let walker = try Thread(name: "walker") {
          while !isOver.withLock({ $0 }) {
            _ = try? Command.shell("find \"$1\" -type f -exec cat {} + >/dev/null", mount.point / "tree")
              .run()
            _ = try? mount.command("invalidate")
          }
        }
        #expect(eventually(within: 30) { (try? latency()) == 0 }, "while it walks")
        isOver.withLock { $0 = true }
        walker.join()
        #expect(eventually(within: 30) { (try? latency() ?? 0) != 0 }, "after it, the mount still there")
      }
    }
  }
}
