import Posix
import TestSupport
import Testing

/// Operations that could block each other, run concurrently.
extension MountTests.ExclusiveTests {
  @Suite struct DeadlockTests {
    /// Seconds without progress after which a thread counts as blocked.
    private static let stallTimeout = 5.0

    @Test("readers, walkers, barriers and changes never block each other", .timeLimit(.minutes(15)))
    func concurrentOperations() throws {
      let seconds =
        Binary.variable("BUNDLEFS_DEADLOCK_SECONDS").flatMap { Double($0) }
        ?? TestLength.of(full: 30, brief: 10)
      let layers = try ChangingLayers(seed: 5)
      var setup = layers.fixture.setup
      setup.lifetime = seconds + 120
      try withMount(setup) { mount in
        let isStopping = Locked(false)
        let workers = try self.workers(mount, layers, until: isStopping)
        var stuck = LoopThread.waitForStall(
          of: workers, until: Clock.now + seconds, limit: Self.stallTimeout)
        isStopping.withLock { $0 = true }
        if stuck.isEmpty {
          _ = eventually(within: Self.stallTimeout) { workers.allSatisfy(\.isFinished) }
          stuck = workers.filter { !$0.isFinished }
        }
        for worker in stuck {
          Issue.record(
            "\(worker.name) is blocked for \(worker.stalledTime) s after \(worker.iterations) iterations")
        }
        for worker in workers {
          #expect(worker.failure == nil, "\(worker.name)")
          #expect(worker.iterations > Int(seconds / 2), "\(worker.name) has made little progress")
        }
        guard stuck.isEmpty else {
          // Aborting the connection fails the blocked requests, so that the threads end.
          mount.abandon()
          _ = eventually(within: 10) { workers.allSatisfy(\.isFinished) }
          throw TestFailure("the mount hangs")
        }
        try mount.barrier()
        try expectMerged(layers.roots, at: mount.point)
      }
    }

    private func workers(
      _ mount: Mount, _ layers: ChangingLayers, until isStopping: Locked<Bool>
    ) throws -> [LoopThread] {
      let point = mount.point
      let readers = try (0..<3).map { number in
        let reader = Locked(MountReader(point, seed: UInt64(number)))
        return try LoopThread("reader \(number)", until: isStopping) { _ in reader.withLock { $0.step() } }
      }
      let walkers = try (0..<2).map { number in
        try LoopThread("walker \(number)", until: isStopping) { Self.walk(point, $0) }
      }
      let changers = try (0..<2).map { number in
        let changer = Locked(layers.changer(seed: UInt64(number) + 50))
        return try LoopThread("changer \(number)", until: isStopping) { _ in
          changer.withLock { $0.step() }
          Clock.sleep(0.0003)
        }
      }
      guard Mount.hasControl else { return readers + walkers + changers }
      let writers = try (0..<2).map { number in
        try LoopThread("barrier \(number)", until: isStopping) { _ in try mount.barrier() }
      }
      let command = try LoopThread("bundlefs sync", until: isStopping) { _ in
        try mount.command("sync", timeout: 20)
      }
      let invalidator = try LoopThread("invalidation", until: isStopping) { _ in
        try mount.writeControl("bundlefs:///invalidate\n")
        Clock.sleep(0.01)
        try mount.writeControl("bundlefs:///invalidate/d1\n")
        Clock.sleep(0.05)
      }
      return readers + walkers + changers + writers + [command, invalidator]
    }

    /// Lists, stats and reads everything below a path, ignoring errors.
    private static func walk(_ path: ByteString, _ worker: LoopThread, depth: Int = 0) {
      for entry in (try? path.list()) ?? [] {
        worker.recordProgress()
        // The links of this test lead outside and are not followed.
        switch (try? (path / entry.name).status())?.kind {
        case .directory where depth < 8: walk(path / entry.name, worker, depth: depth + 1)
        case .regular: _ = try? (path / entry.name).read()
        default: break
        }
      }
    }
  }
}

/// Random accesses to entries that a `LayerChanger` changes.
struct MountReader {
  private let point: ByteString
  private var random: SplitMix64

  init(_ point: ByteString, seed: UInt64) {
    self.point = point
    random = SplitMix64(seed: seed)
  }

  mutating func step() {
    var path = point
    for _ in 0..<random.number(0...2) { path = path / ByteString("d\(random.number(0...5))") }
    let file = path / (random.pick(["f", "w"] as [ByteString]) + ByteString("\(random.number(0...7))"))
    switch random.number(0...5) {
    case 0: _ = try? path.list()
    case 1: _ = try? file.status()
    case 2: _ = try? file.linkTarget()
    default: _ = try? file.read()
    }
  }
}
