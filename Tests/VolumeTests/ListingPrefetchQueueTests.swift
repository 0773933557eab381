import Fuse
import Testing

@testable import Volume

/// Which directories are prefetched, and when; nothing is listed here.
@Suite struct ListingPrefetchQueueTests {
  private func nodes(_ numbers: ClosedRange<UInt64>) -> [NodeID] { numbers.map { NodeID(rawValue: $0) } }
  private func node(_ number: UInt64) -> NodeID { NodeID(rawValue: number) }

  /// Takes and finishes the next job.
  private func prepare(_ queue: ListingPrefetchQueue) -> NodeID? {
    guard let job = queue.take() else { return nil }
    if queue.finish(job) != nil { return nil }
    return job.directory
  }

  @Test("the directories of the last listing come first, in its order, across its pages")
  func order() {
    let queue = ListingPrefetchQueue()
    _ = queue.add(nodes(10...11), in: node(1), isBegin: true)
    _ = queue.add(nodes(12...13), in: node(1), isBegin: false)
    #expect(prepare(queue) == node(10))
    _ = queue.add(nodes(20...21), in: node(10), isBegin: true)
    #expect((0..<4).map { _ in prepare(queue) } == [node(20), node(21), node(11), node(12)])
    #expect(!queue.hasJob && prepare(queue) == nil, "the limit per listing is reached")
    _ = queue.add([], in: node(20), isBegin: true)
    #expect(queue.hasJob && prepare(queue) == node(13) && !queue.hasJob)
  }

  @Test("a begun job is continued first, and can be taken by its directory")
  func begun() throws {
    let queue = ListingPrefetchQueue()
    _ = queue.add(nodes(10...11), in: node(1), isBegin: true)
    let job = try #require(queue.take())
    #expect(queue.job(of: node(10)) == nil, "a thread is working on it")
    #expect(queue.putBack(job) == nil)
    #expect(queue.job(of: node(10))?.directory == node(10))
    #expect(queue.job(of: node(10)) == nil, "it was taken")
    #expect(prepare(queue) == node(11) && queue.job(of: node(11)) != nil)
  }

  @Test("the number of unused listings is limited, and the oldest is evicted only after many listings")
  func limit() {
    let queue = ListingPrefetchQueue()
    _ = queue.add(nodes(1000...2000), in: node(1), isBegin: true)
    var prepared = 0
    for _ in 0..<100 {
      while prepare(queue) != nil { prepared += 1 }
      #expect(queue.add([], in: node(2), isBegin: true) == nil)
    }
    #expect(prepared == ListingPrefetchQueue.maxPrepared && !queue.hasJob)
    #expect(queue.job(of: node(1000)) != nil)
    _ = queue.add([], in: node(2), isBegin: true)
    #expect(prepare(queue) == node(1000 + UInt64(prepared)) && prepare(queue) == nil)
    var evicted: [NodeID] = []
    for _ in 0..<ListingPrefetchQueue.lifetime {
      evicted += queue.add([], in: node(2), isBegin: true).map { [$0.directory] } ?? []
    }
    #expect(evicted.first == node(1001))
    #expect(prepare(queue) != nil)
  }

  @Test("a job that is passed over does not count against the limit, an abandoned one does")
  func credit() throws {
    let queue = ListingPrefetchQueue()
    _ = queue.add(nodes(1000...2000), in: node(1), isBegin: true)
    for _ in 0..<100 {
      _ = try #require(queue.take())
      queue.skip()
    }
    for _ in 0..<ListingPrefetchQueue.maxPerListing { _ = try #require(queue.take()) }
    #expect(queue.take() == nil)
  }

  @Test("clear removes all jobs and invalidates those in progress")
  func clear() throws {
    let queue = ListingPrefetchQueue()
    _ = queue.add(nodes(10...15), in: node(1), isBegin: true)
    _ = prepare(queue)
    _ = queue.putBack(try #require(queue.take()))
    #expect(queue.clear().map(\.directory) == nodes(10...11))
    #expect(!queue.hasJob && queue.take() == nil && queue.clear().isEmpty)
    _ = queue.add(nodes(20...21), in: node(1), isBegin: true)
    let (late, later) = (try #require(queue.take()), try #require(queue.take()))
    #expect(queue.clear().isEmpty)
    #expect(queue.putBack(late)?.directory == node(20) && queue.finish(later)?.directory == node(21))
    #expect(!queue.hasJob && queue.job(of: node(20)) == nil)
  }
}
