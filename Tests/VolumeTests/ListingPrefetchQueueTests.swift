import Fuse
import Testing

@testable import Volume

/// Which directories are prepared, and when. Nothing is listed here.
@Suite struct ListingsAheadTests {
  private func nodes(_ numbers: ClosedRange<UInt64>) -> [NodeID] { numbers.map { NodeID(rawValue: $0) } }
  private func node(_ number: UInt64) -> NodeID { NodeID(rawValue: number) }

  /// Prepares the next one.
  private func prepare(_ ahead: ListingPrefetchQueue) -> NodeID? {
    guard let job = ahead.take() else { return nil }
    if ahead.finish(job) != nil { return nil }
    return job.directory
  }

  @Test("the directories of what was listed last come first, in their order, whatever the pages")
  func order() {
    let ahead = ListingPrefetchQueue()
    _ = ahead.add(nodes(10...11), in: node(1), isBegin: true)
    _ = ahead.add(nodes(12...13), in: node(1), isBegin: false)
    #expect(prepare(ahead) == node(10))
    _ = ahead.add(nodes(20...21), in: node(10), isBegin: true)
    #expect((0..<4).map { _ in prepare(ahead) } == [node(20), node(21), node(11), node(12)])
    #expect(!ahead.hasJob && prepare(ahead) == nil, "so much without another listing")
    _ = ahead.add([], in: node(20), isBegin: true)
    #expect(ahead.hasJob && prepare(ahead) == node(13) && !ahead.hasJob)
  }

  @Test("what is begun goes on, and is handed out as far as it is")
  func begun() throws {
    let ahead = ListingPrefetchQueue()
    _ = ahead.add(nodes(10...11), in: node(1), isBegin: true)
    let job = try #require(ahead.take())
    #expect(ahead.job(of: node(10)) == nil, "somebody works at it")
    #expect(ahead.goOn(job) == nil)
    #expect(ahead.job(of: node(10))?.directory == node(10))
    #expect(ahead.job(of: node(10)) == nil, "it has one user")
    #expect(prepare(ahead) == node(11) && ahead.job(of: node(11)) != nil)
  }

  @Test("so many wait to be asked for, and the oldest makes room only after many listings")
  func full() {
    let ahead = ListingPrefetchQueue()
    _ = ahead.add(nodes(1000...2000), in: node(1), isBegin: true)
    var prepared = 0
    for _ in 0..<100 {
      while prepare(ahead) != nil { prepared += 1 }
      #expect(ahead.add([], in: node(2), isBegin: true) == nil)
    }
    #expect(prepared == ListingPrefetchQueue.maxPrepared && !ahead.hasJob)
    #expect(ahead.job(of: node(1000)) != nil)
    _ = ahead.add([], in: node(2), isBegin: true)
    #expect(prepare(ahead) == node(1000 + UInt64(prepared)) && prepare(ahead) == nil)
    var gone: [NodeID] = []
    for _ in 0..<ListingPrefetchQueue.lifetime {
      gone += ahead.add([], in: node(2), isBegin: true).map { [$0.directory] } ?? []
    }
    #expect(gone.first == node(1001))
    #expect(prepare(ahead) != nil)
  }

  @Test("what is not worth beginning costs nothing, what is read in vain does")
  func credit() throws {
    let ahead = ListingPrefetchQueue()
    _ = ahead.add(nodes(1000...2000), in: node(1), isBegin: true)
    for _ in 0..<100 {
      _ = try #require(ahead.take())
      ahead.passOver()
    }
    for _ in 0..<ListingPrefetchQueue.maxPerListing { _ = try #require(ahead.take()) }
    #expect(ahead.take() == nil)
  }

  @Test("everything is taken out at the end")
  func clear() throws {
    let ahead = ListingPrefetchQueue()
    _ = ahead.add(nodes(10...15), in: node(1), isBegin: true)
    _ = prepare(ahead)
    _ = ahead.goOn(try #require(ahead.take()))
    #expect(ahead.clear().map(\.directory) == nodes(10...11))
    #expect(!ahead.hasJob && ahead.take() == nil && ahead.clear().isEmpty)
    _ = ahead.add(nodes(20...21), in: node(1), isBegin: true)
    let (late, later) = (try #require(ahead.take()), try #require(ahead.take()))
    #expect(ahead.clear().isEmpty)
    #expect(ahead.goOn(late)?.directory == node(20) && ahead.finish(later)?.directory == node(21))
    #expect(!ahead.hasJob && ahead.job(of: node(20)) == nil)
  }
}
