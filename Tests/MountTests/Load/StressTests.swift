import Posix
import TestSupport
import Testing

/// Concurrent readers while the layers change.
extension MountTests {
  @Suite struct StressTests {
    /// A build to test.
    struct Build: Sendable, CustomTestStringConvertible {
      let testDescription: String
      let binary: ByteString?

      /// The build under test and the sanitizer builds named by environment variables.
      static var all: [Build] {
        let checked = ["BUNDLEFS_TSAN_BINARY", "BUNDLEFS_ASAN_BINARY"].compactMap { name in
          Binary.variable(name).map { Build(testDescription: name, binary: ByteString($0)) }
        }
        return [Build(testDescription: "the build under test", binary: nil)] + checked
      }
    }

    @Test(
      "eight processes read at random while the layers change", .timeLimit(.minutes(15)), arguments: Build.all
    )
    func readersAndChanges(build: Build) throws {
      let seconds = Binary.variable("BUNDLEFS_STRESS_SECONDS").flatMap { Double($0) } ?? 60
      let layers = try ChangingLayers(seed: 1)
      var setup = layers.fixture.setup
      setup.binary = build.binary
      setup.lifetime = seconds + 120
      let mount = try Mount(setup)
      defer { mount.abandon() }
      try stress(mount, layers, seconds: seconds)
      try mount.barrier()
      try expectMerged(layers.roots, at: mount.point)
      try mount.unmount()
      let log = mount.process.errorText
      #expect(!log.contains("WARNING: ThreadSanitizer"), "\(log.prefix(6000))")
      #expect(!log.contains("ERROR: AddressSanitizer"), "\(log.prefix(6000))")
      #expect(!log.contains("ERROR: LeakSanitizer"), "\(log.prefix(6000))")
    }

    private func stress(_ mount: Mount, _ layers: ChangingLayers, seconds: Double) throws {
      let program = try Binary.besideTheTests("stressreader")
      let readers = try (1...8).map { seed in
        try Child(Command([program, mount.point, ByteString("\(seconds)"), ByteString("\(seed)")]))
      }
      let changers = try (1...2).map { seed in
        try ChangingThread(layers.changer(seed: UInt64(seed) + 100), seconds)
      }
      for reader in readers {
        let outcome = try reader.wait(timeout: seconds + 60)
        #expect(outcome.status == 0, "\(outcome.errorText.prefix(3000))")
        let count = Int(outcome.outputText.dropLast()) ?? 0
        #expect(count > Int(seconds), "only \(count) reads succeeded")
      }
      for changer in changers { changer.join() }
      #expect(mount.process.status() == nil, "the daemon is dead: \(mount.process.errorText.prefix(3000))")
    }
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
