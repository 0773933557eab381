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
    func snapshot() throws -> ListingSnapshot {
      let transient = Set((20..<60).filter { _ in random.percent(50) })
      return ListingSnapshot(try listing(permanent.union(transient).shuffled(using: &random)))
    }
    for _ in 0..<20 {
      var present = try snapshot()
      var seen: [String] = []
      var cookie = ListingSnapshot.dotDot
      while true {
        let page = present.positions(after: cookie).prefix(random.number(1...7))
        if page.isEmpty { break }
        for position in page {
          let item = present.item(at: position)
          seen.append(String(decoding: present.listing.name(of: item), as: UTF8.self))
          #expect(position.cookie > cookie)
          cookie = position.cookie
        }
        if random.percent(60) { present = try snapshot() }
      }
      for name in permanent { #expect(seen.count { $0 == "name \(name)" } == 1, "seed \(seed)") }
      #expect(Set(seen).count == seen.count, "seed \(seed): a name that was created again is listed twice")
    }
  }

  @Test("cookies are positive as an off_t and differ from those of . and ..")
  func range() throws {
    let snapshot = ListingSnapshot(try listing(0..<100_000))
    let positions = snapshot.positions(after: ListingSnapshot.dotDot)
    #expect(Set(positions.map(\.index)).count == 100_000)
    #expect(Set(positions.map(\.cookie)).count == 100_000)
    let last = try #require(positions.last).cookie
    #expect(last <= UInt64(Int64.max))
    #expect(snapshot.positions(after: last).isEmpty)
  }

  @Test("the cache has the latest snapshot of a directory until it is dropped")
  func latest() throws {
    let listings = ListingCache()
    #expect(listings.snapshot(of: Self.directory) == nil)
    for count in [5, 3] {
      listings.keep(ListingSnapshot(try listing(0..<count)), of: Self.directory)
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
    let small = ListingSnapshot(try listing(0..<2))
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
    let large = ListingSnapshot(try listing(0..<ListingCache.nameLimit / 4))
    for other in UInt64(0)..<6 { listings.keep(large, of: NodeID(rawValue: other)) }
    #expect(listings.counts == (4, ListingCache.nameLimit / 4 * 4))
    #expect(listings.snapshot(of: NodeID(rawValue: 5)) != nil)
  }
}

@Suite struct InodeNumbersTests {
  @Test("equal for one file, different for any two, even if an inode number does not fit")
  func files() {
    let numbers = InodeNumbers()
    var seen: [UInt64: String] = [:]
    for device: UInt64 in [5, 9, 1 << 40] {
      for inode: UInt64 in [0, 1, 2, 15, 16, 17, 1 << 47, (1 << 48) - 1, 1 << 48, 1 << 63, .max] {
        let number = numbers.file(device: device, inode: inode)
        #expect(number == numbers.file(device: device, inode: inode))
        #expect(number >> 63 == 0 && number > InodeNumbers.root)
        #expect(seen.updateValue("\(device) \(inode)", forKey: number) == nil)
      }
    }
    #expect(numbers.file(device: 5, inode: 4711) == 4711)
  }

  @Test("numbers of unknown files are dropped, those of known ones kept, and no two known files share one")
  func bounded() {
    let numbers = InodeNumbers(limit: 1000)
    let known = (0..<100).map { (inode: UInt64($0) << 48 | 1 << 63, number: UInt64(0)) }.map {
      (inode: $0.inode, number: numbers.file(device: 7, inode: $0.inode))
    }
    let live = Set(known.map(\.number))
    #expect(live.count == known.count)
    for inode in 0..<UInt64(20_000) {
      let number = numbers.file(device: 8 + inode % 3, inode: inode << 50 | 1 << 49)
      #expect(!live.contains(number))
      if numbers.isCrowded { numbers.drop(except: live) }
      #expect(numbers.hashedCount <= 1001)
    }
    for file in known { #expect(numbers.file(device: 7, inode: file.inode) == file.number) }
    #expect(numbers.file(device: 8, inode: 1 << 49) == numbers.file(device: 8, inode: 1 << 49))
  }

  @Test("more devices than have an index")
  func devices() {
    let numbers = InodeNumbers()
    var seen = Set<UInt64>()
    for device in 0..<UInt64(40_000) {
      let number = numbers.file(device: device, inode: 100)
      #expect(seen.insert(number).inserted && number >> 63 == 0)
    }
    for device in [0, 1, 32_000, 39_999] as [UInt64] {
      #expect(!seen.insert(numbers.file(device: device, inode: 100)).inserted)
    }
  }

  @Test("a directory's number depends only on its parent and name, and is never a file's")
  func directories() {
    let number = InodeNumbers.directory(parent: InodeNumbers.root, name: "Resources")
    #expect(number == InodeNumbers.directory(parent: InodeNumbers.root, name: "Resources"))
    #expect(number >> 63 == 1)
    #expect(number != InodeNumbers.directory(parent: number, name: "Resources"))
    #expect(number != InodeNumbers.directory(parent: InodeNumbers.root, name: "resources"))
  }
}
