import TestSupport
import Testing

/// Random changes of mounted stacks while the kernel reports few of them, because its limits are low or a layer lies on
/// FUSE.
extension MountTests.ExclusiveTests {
  @Suite struct DegradedMutationTests {
    @Test(
      "after a barrier the mount matches the model where changes are not reported", .timeLimit(.minutes(10)),
      arguments: [Degradation.fewWatches, .shortQueue, .fuse], MutationRun.seeds(percent: 10))
    func degraded(degradation: Degradation, seed: UInt64) throws {
      try MutationRun(seed: seed, degradation: degradation).run { try $0.barrier() }
    }

    @Test(
      "after a barrier the mount matches the model without case", .timeLimit(.minutes(10)),
      arguments: [Degradation.none, .fewWatches, .shortQueue], MutationRun.seeds(percent: 10))
    func folded(degradation: Degradation, seed: UInt64) throws {
      try MutationRun(seed: seed, foldsNames: true, degradation: degradation).run { try $0.barrier() }
    }
  }
}
