import TestSupport
import Testing

/// The model-based test of coherence once more, with changes announced and a watcher on every directory.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct AnnounceModelTests {
    @Test(
      "with watchers everywhere the mount is what the model says, and they hear of every change",
      .timeLimit(.minutes(10)), arguments: MutationRun.seeds(percent: 20))
    func watched(seed: UInt64) throws {
      try MutationRun(seed: seed, isWatched: true).run { try $0.barrier() }
    }
  }
}
