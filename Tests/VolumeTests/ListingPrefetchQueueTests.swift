import Fuse
import Testing

@testable import Volume

/// Which directories are prefetched, and when; nothing is listed here.
@Suite struct ListingPrefetchQueueTests {
  private func nodes(_ numbers: ClosedRange<UInt64>) -> [NodeID] { numbers.map { NodeID(rawValue: $0) } }
  private func node(_ number: UInt64) -> NodeID { NodeID(rawValue: number) }

  /// Takes and finishes the next job.
  private func prepare(_ queue: ListingPrefetchQueue, with directories: [NodeID] = []) -> NodeID? {
    guard let job = queue.take() else { return nil }
    if queue.finish(job, directories) != nil { return nil }
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
    #expect(queue.take() == nil, "the limit per listing is reached")
    _ = queue.add([], in: node(20), isBegin: true)
    #expect(prepare(queue) == node(13) && queue.take() == nil)
  }

  @Test("what is in a prefetched directory comes before what follows it")
  func depthFirst() {
    let queue = ListingPrefetchQueue()
    _ = queue.add(nodes(10...11), in: node(1), isBegin: true)
    #expect(prepare(queue, with: nodes(20...21)) == node(10))
    #expect(prepare(queue, with: nodes(30...30)) == node(20))
    #expect(prepare(queue) == node(30) && prepare(queue) == node(21))
    // The program asks for the first one, whose directories are known.
    #expect(queue.job(of: node(10)) != nil)
    _ = queue.add([], in: node(10), isBegin: true)
    #expect(prepare(queue) == node(11))
  }

  @Test("a directory that a program asks for first is left to its request")
  func overtaken() throws {
    let queue = ListingPrefetchQueue()
    _ = queue.add(nodes(10...11), in: node(1), isBegin: true)
    let job = try #require(queue.take())
    #expect(queue.isWanted(job))
    #expect(queue.job(of: node(10)) == nil && !queue.isWanted(job))
    #expect(queue.finish(job, nodes(20...20))?.directory == node(10), "to be discarded")
    #expect(queue.job(of: node(10)) == nil && !queue.isFollowed)
    #expect(prepare(queue) == node(11) && queue.job(of: node(11)) != nil && queue.isFollowed)
    #expect(queue.job(of: node(11)) == nil, "it was taken")
  }

  @Test("a listing starts the prefetcher once, and again after its end")
  func starts() {
    let queue = ListingPrefetchQueue()
    #expect(!queue.add([], in: node(1), isBegin: true).starts, "there is nothing to do")
    #expect(queue.add(nodes(10...19), in: node(1), isBegin: true).starts)
    #expect(!queue.add([], in: node(2), isBegin: true).starts, "it is running")
    #expect(prepare(queue) == node(10) && !queue.end(), "there is more")
    while prepare(queue) != nil {}
    #expect(queue.end())
    #expect(queue.add([], in: node(2), isBegin: true).starts)
    queue.close()
    #expect(queue.take() == nil && queue.end())
    #expect(!queue.add(nodes(20...29), in: node(2), isBegin: true).starts, "it is closed")
  }

  @Test("the number of unused listings is limited, and the oldest is evicted only after many listings")
  func limit() {
    let queue = ListingPrefetchQueue()
    _ = queue.add(nodes(1000...2000), in: node(1), isBegin: true)
    var prepared = 0
    for _ in 0..<100 {
      while prepare(queue) != nil { prepared += 1 }
      #expect(queue.add([], in: node(2), isBegin: true).evicted == nil)
    }
    #expect(prepared == ListingPrefetchQueue.maxPrepared && queue.take() == nil)
    #expect(queue.job(of: node(1000)) != nil)
    _ = queue.add([], in: node(2), isBegin: true)
    #expect(prepare(queue) == node(1000 + UInt64(prepared)) && prepare(queue) == nil)
    var evicted: [NodeID] = []
    for _ in 0..<ListingPrefetchQueue.lifetime {
      evicted += queue.add([], in: node(2), isBegin: true).evicted.map { [$0.directory] } ?? []
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

  @Test("clear removes all jobs and invalidates the one in progress")
  func clear() throws {
    let queue = ListingPrefetchQueue()
    #expect(queue.add(nodes(10...15), in: node(1), isBegin: true).starts)
    _ = prepare(queue)
    let job = try #require(queue.take())
    #expect(queue.clear().map(\.directory) == nodes(10...10))
    #expect(!queue.isWanted(job) && queue.take() == nil && queue.clear().isEmpty)
    #expect(!queue.add(nodes(11...12), in: node(1), isBegin: true).starts, "it is still running")
    // The same directory may be in progress again.
    let again = try #require(queue.take())
    #expect(again.directory == node(11) && job.directory == node(11))
    #expect(queue.finish(job, [])?.directory == node(11) && queue.isWanted(again))
    #expect(queue.finish(again, []) == nil && queue.job(of: node(11)) != nil)
  }
}
