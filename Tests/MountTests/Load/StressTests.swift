import Posix
import TestSupport
import Testing

/// Concurrent readers while the layers change.
extension MountTests.ExclusiveTests {
  @Suite struct StressTests {
    @Test(
      "eight processes read at random while the layers change, from each build", .timeLimit(.minutes(15)))
    func readersAndChanges() throws {
      let seconds =
        Binary.variable("BUNDLEFS_STRESS_SECONDS").flatMap { Double($0) }
        ?? TestLength.of(full: 60, brief: 15)
      // The build under test, and the sanitizer builds.
      let sanitized = ["BUNDLEFS_TSAN_BINARY", "BUNDLEFS_ASAN_BINARY"].compactMap { Binary.variable($0) }
      let runs = try ([nil] + sanitized).map { build in
        try StressRun(binary: build.map { ByteString($0) }, seconds: seconds)
      }
      defer { for run in runs { run.mount.abandon() } }
      for run in runs { try run.finish() }
    }
  }
}

/// A mount of a build, readers, and changes of its layers, side by side with those of other builds.
private struct StressRun {
  let mount: Mount
  private let seconds: Double
  private let layers: ChangingLayers
  private let readers: [Child]
  private let changers: [ChangingThread]

  init(binary: ByteString?, seconds: Double) throws {
    self.seconds = seconds
    let layers = try ChangingLayers(seed: 1)
    var setup = layers.fixture.setup
    setup.binary = binary
    setup.lifetime = seconds + 240
    let mount = try Mount(setup)
    let program = try Binary.besideTheTests("stressreader")
    readers = try (1...8).map { seed in
      try Child(Command([program, mount.point, ByteString("\(seconds)"), ByteString("\(seed)")]))
    }
    changers = try (1...2).map { seed in
      try ChangingThread(layers.changer(seed: UInt64(seed) + 100), seconds)
    }
    (self.layers, self.mount) = (layers, mount)
  }

  func finish() throws {
    for reader in readers {
      let outcome = try reader.wait(timeout: seconds + 60)
      #expect(outcome.status == 0, "\(outcome.errorText.prefix(3000))")
      let count = Int(outcome.outputText.dropLast()) ?? 0
      #expect(count > Int(seconds), "only \(count) reads succeeded")
    }
    for changer in changers { changer.join() }
    #expect(mount.process.status() == nil, "the daemon is dead: \(mount.process.errorText.prefix(3000))")
    try mount.barrier()
    try expectMerged(layers.roots, at: mount.point)
    try mount.unmount()
    let log = mount.process.errorText
    #expect(!log.contains("WARNING: ThreadSanitizer"), "\(log.prefix(6000))")
    #expect(!log.contains("ERROR: AddressSanitizer"), "\(log.prefix(6000))")
    #expect(!log.contains("ERROR: LeakSanitizer"), "\(log.prefix(6000))")
  }
}

/// A thread that changes layers for a number of seconds.
final class ChangingThread: Sendable {
  private let isDone = Locked(false)

  init(_ changer: LayerChanger, _ seconds: Double) throws {
    let end = Clock.now + seconds
    let isDone = self.isDone
    _ = try Thread(name: "layer changer") {
      var changer = changer
      while Clock.now < end {
        changer.step()
        Clock.sleep(0.0005)
      }
      isDone.withLock { $0 = true }
    }
  }

  /// Waits for the thread to finish.
  func join() { _ = eventually(within: 120) { isDone.withLock { $0 } } }
}
