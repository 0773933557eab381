import Glibc
import Posix
import TestSupport
import Testing

/// The mount option `low_latency`: idle processors stay awake during bursts of requests.
extension MountTests.ExclusiveTests {
  @Suite struct CPULatencyTests {
    /// The wake-up latency in microseconds to which the kernel limits all processors; nil where the daemon makes no
    /// request: it is not root's, or the cpuidle driver is not haltpoll.
    private func latency() throws -> Int32? {
      let driver = try? ByteString(CPULatencyRequest.driver).read()
      guard geteuid() == 0, driver == Array("haltpoll\n".utf8) else { return nil }
      guard let device = try? Descriptor.open(CPULatencyRequest.device, .read) else { return nil }
      var latency: Int32 = 0
      guard read(device.rawValue, &latency, 4) == 4 else { return nil }
      return latency
    }

    private func setup() throws -> (fixture: Fixture, setup: MountSetup) {
      let fixture = try Fixture(isFilled: false)
      try fixture.fill(folders: (0..<200).map { ByteString("tree/folder\($0)") }, files: 4)
      return (fixture, fixture.setup)
    }

    /// Reads all files of the tree once, and has the kernel drop its caches.
    private static func walk(_ mount: Mount) {
      _ = try? Command.shell("find \"$1\" -type f -exec cat {} + >/dev/null", mount.point / "tree").run()
      _ = try? mount.command("invalidate")
    }

    @Test(
      "processors stay awake during a walk, and not after it", .timeLimit(.minutes(3)), arguments: [1, 4])
    func walking(walkers count: Int) throws {
      var (fixture, setup) = try setup()
      defer { withExtendedLifetime(fixture) {} }
      setup.options = ["low_latency"]
      // Another mount may hold the device for a while; if another program holds it for good, nothing can be seen.
      guard try latency() != nil, eventually(within: 30, { (try? latency() ?? 0) != 0 }) else { return }
      try withMount(setup) { mount in
        let isOver = Locked(false)
        let walkers = try (0..<count).map { number in
          ThreadHandle(
            try Thread(name: "walker \(number)") {
              while !isOver.withLock({ $0 }) { Self.walk(mount) }
            })
        }
        #expect(eventually(within: 30) { (try? latency()) == 0 }, "during the walk")
        isOver.withLock { $0 = true }
        for walker in walkers { walker.join() }
        #expect(eventually(within: 30) { (try? latency() ?? 0) != 0 }, "after it, the mount still there")
      }
    }

    @Test("without the option the daemon does not open the device")
    func isOffByDefault() throws {
      let (fixture, setup) = try setup()
      defer { withExtendedLifetime(fixture) {} }
      try withMount(setup) { mount in
        Self.walk(mount)
        let descriptors = ByteString("/proc/\(mount.worker)/fd")
        let targets = try descriptors.names().compactMap { try? (descriptors / $0).linkTarget() }
        #expect(targets.contains("/dev/fuse") && !targets.contains(ByteString(CPULatencyRequest.device)))
      }
    }
  }
}
