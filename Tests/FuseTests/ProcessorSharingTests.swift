import Posix
import TestSupport
import Testing

@testable import Fuse

@Suite struct ProcessorSharingTests {
  /// Begins to share until the thread runs. Other programs may need its processor at any time, so that it ends at once,
  /// and does not begin again for up to a second.
  private func begins(_ sharing: ProcessorSharing) -> Bool {
    let before = sharing.bursts.count
    return eventually(within: 60) {
      sharing.record(caller: Thread.currentID)
      sharing.begin(beside: Thread.currentID)
      return sharing.bursts.count > before
    }
  }

  @Test(
    "program and workers share a processor during a burst, and not for long after it",
    .enabled(if: processorCount == 2))
  func burst() throws {
    let sharing = try #require(try ProcessorSharing())
    defer { sharing.stop() }
    let before = sharing.processor
    #expect(before == nil)
    for _ in 0..<3 {
      let hasBegun = begins(sharing)
      #expect(hasBegun)
      let hasEnded = eventually(within: 60) { sharing.processor == nil }
      #expect(hasEnded, "no more requests arrive")
    }
  }

  @Test("requests of another program end a burst", .enabled(if: processorCount == 2))
  func strangers() throws {
    let sharing = try #require(try ProcessorSharing())
    defer { sharing.stop() }
    let hasBegun = begins(sharing)
    #expect(hasBegun)
    var (requests, ended) = (0, false)
    while !ended, requests < 1_000_000_000 {
      // The requests arrive without a pause that would end the burst.
      sharing.record(caller: Thread.currentID + 1)
      (requests, ended) = (requests + 1, sharing.processor == nil)
    }
    #expect(ended)
  }

  @Test("stopping during a burst ends the thread", .enabled(if: processorCount == 2))
  func stop() throws {
    let sharing = try #require(try ProcessorSharing())
    let hasBegun = begins(sharing)
    #expect(hasBegun)
    sharing.stop()
    let after = sharing.processor
    #expect(after == nil)
  }

  @Test("nothing is shared unless there are two processors", arguments: [1, 3, 64])
  func otherMachines(processors: Int) throws {
    #expect(try ProcessorSharing(processors: processors) === nil)
  }
}
