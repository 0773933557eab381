import TestSupport
import Testing

/// The model-based coherence test with announcements and a watch on every directory.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct AnnounceModelTests {
    @Test(
      "with a watch on every directory, the mount matches the model and every change causes an event",
      .timeLimit(.minutes(10)), arguments: MutationRun.seeds(percent: 20))
    func watched(seed: UInt64) throws {
      try MutationRun(seed: seed, isWatched: true).run { try $0.barrier() }
    }
  }
}
