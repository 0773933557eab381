import Fuse
import Posix
import TestSupport
import Testing

@testable import Layers
@testable import Volume

@Suite struct ListingSnapshotTests {
  private static let directory = NodeID(rawValue: 7)

  private func listing(_ names: some Sequence<Int>) throws -> Listing {
    var listing = Listing()
    for name in names {
      let bytes = Array("name \(name)".utf8)
      try withCName(bytes) { name throws(Errno) in
        _ = listing.add(name, length: bytes.count, kind: .regular, layer: 0, device: 1, inode: 100)
      }
    }
    return listing
  }

  @Test(
    "a permanent name is listed exactly once while others are created and removed between pages",
    arguments: 0..<50)
  func permanentNames(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let permanent = Set(0..<20)
    // So few hashes that most names share theirs with others.
    let memory = try SharedMemory(name: "test", size: SharedRegions.size)
    var cookies = ListingCookies(memory: memory, hashCount: UInt64(random.number(1...40)))
    func snapshot() throws -> ListingSnapshot {
      let transient = Set((20..<60).filter { _ in random.percent(50) })
      return ListingSnapshot(try listing(permanent.union(transient).shuffled(using: &random)), cookies)
    }
    for _ in 0..<20 {
      var present = try snapshot()
      var seen: [String] = []
      var cookie = ListingCookies.dotDot
      while true {
        let page = try present.positions(after: cookie, cookies).prefix(random.number(1...7))
        if page.isEmpty { break }
        for position in page {
          let item = present.item(at: position)
          seen.append(String(decoding: present.listing.name(of: item), as: UTF8.self))
          cookie = UInt64(position.cookie)
        }
        // A worker's death.
        if random.percent(20) { cookies = ListingCookies(memory: memory, hashCount: cookies.hashCount) }
        if random.percent(60) { present = try snapshot() }
      }
      for name in permanent { #expect(seen.count { $0 == "name \(name)" } == 1, "seed \(seed)") }
      #expect(Set(seen).count == seen.count, "seed \(seed): a name that was created again is listed twice")
    }
  }

  @Test("cookies are positive as an off_t of 32 bits and differ from each other and those of . and ..")
  func range() throws {
    let cookies = ListingCookies()
    let snapshot = ListingSnapshot(try listing(0..<100_000), cookies)
    let positions = try snapshot.positions(after: ListingCookies.dotDot, cookies)
    #expect(Set(positions.map(\.index)).count == 100_000)
    #expect(Set(positions.map(\.cookie)).count == 100_000)
    #expect(positions.allSatisfy { $0.cookie <= UInt32(Int32.max) })
    let last = try #require(positions.last).cookie
    #expect(try snapshot.positions(after: UInt64(last), cookies).isEmpty)
  }

  @Test("beyond the limit the oldest assigned cookies are unknown, also to a successor")
  func assigned() throws {
    let memory = try SharedMemory(name: "test", size: SharedRegions.size)
    var cookies = ListingCookies(memory: memory, limit: 100)
    // More than there are cookies, and more than the log has room for at once.
    for name in 0..<1 << 20 + 50 { _ = cookies.assignedCookie(of: Array("a rather long name \(name)".utf8)) }
    for _ in 0..<2 {
      for name in 0..<1 << 20 + 50 where name < 100 || name >= 1 << 20 - 100 {
        let bytes = Array("a rather long name \(name)".utf8)
        let cookie = ListingCookies.firstAssigned + UInt64(name % (1 << 20))
        let isKnown = name >= 1 << 20 - 50
        if isKnown {
          #expect(try cookies.name(of: cookie) == bytes && cookies.assignedCookie(of: bytes) == cookie)
        }
        if !isKnown, name >= 50 {
          let error = #expect(throws: Errno.self) { try cookies.name(of: cookie) }
          #expect(error == .invalidArgument)
        }
      }
      cookies = ListingCookies(memory: memory, limit: 100)
    }
  }

  @Test("the cache has the latest snapshot of a directory until it is dropped")
  func latest() throws {
    let listings = ListingCache()
    #expect(listings.snapshot(of: Self.directory) == nil)
    for count in [5, 3] {
      listings.keep(ListingSnapshot(try listing(0..<count), ListingCookies()), of: Self.directory)
      #expect(listings.snapshot(of: Self.directory)?.listing.items.count == count)
      #expect(listings.counts == (1, count))
    }
    listings.drop(Self.directory)
    listings.drop(Self.directory)
    #expect(listings.snapshot(of: Self.directory) == nil)
    #expect(listings.counts == (0, 0))
  }

  @Test("beyond the limit the least recently used listings are evicted")
  func limit() throws {
    let listings = ListingCache()
    let small = ListingSnapshot(try listing(0..<2), ListingCookies())
    listings.keep(small, of: Self.directory)
    for other in 100..<100 + 2 * UInt64(ListingCache.limit) {
      listings.keep(small, of: NodeID(rawValue: other))
      #expect(listings.snapshot(of: Self.directory) != nil)
    }
    #expect(listings.counts == (ListingCache.limit, ListingCache.limit * 2))
    #expect(listings.snapshot(of: NodeID(rawValue: 100)) == nil)
  }

  @Test("the number of cached names is limited, but one listing is always kept")
  func nameLimit() throws {
    let listings = ListingCache()
    let large = ListingSnapshot(try listing(0..<ListingCache.nameLimit / 4), ListingCookies())
    for other in UInt64(0)..<6 { listings.keep(large, of: NodeID(rawValue: other)) }
    #expect(listings.counts == (4, ListingCache.nameLimit / 4 * 4))
    #expect(listings.snapshot(of: NodeID(rawValue: 5)) != nil)
  }
}
