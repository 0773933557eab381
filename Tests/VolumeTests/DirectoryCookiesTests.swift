import Posix
import TestSupport
import Testing

@testable import Layers
@testable import Volume

@Suite struct DirectoryCookiesTests {
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

  @Test("a name that stays is listed exactly once, whatever comes and goes between pages", arguments: 0..<50)
  func staying(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let cookies = DirectoryCookies()
    let staying = Set(0..<20)
    var passing = Set(20..<40)
    func refresh() throws {
      passing = Set((20..<60).filter { _ in random.percent(50) })
      _ = cookies.refresh(try listing(staying.union(passing).shuffled(using: &random)))
    }
    try refresh()
    for _ in 0..<20 {
      var seen: [String] = []
      var cookie: UInt64 = 2
      while true {
        let snapshot = try #require(cookies.snapshot)
        let page = snapshot.order[snapshot.position(after: cookie)...].prefix(random.number(1...7))
        if page.isEmpty { break }
        for place in page {
          let item = snapshot.listing.items[Int(place)]
          seen.append(String(decoding: snapshot.listing.name(of: item), as: UTF8.self))
          #expect(snapshot.cookies[Int(place)] > cookie)
          cookie = snapshot.cookies[Int(place)]
        }
        if random.percent(60) { try refresh() }
      }
      for name in staying { #expect(seen.count { $0 == "name \(name)" } == 1, "seed \(seed)") }
      #expect(Set(seen).count == seen.count, "seed \(seed): a name that came again is listed twice")
    }
  }

  @Test("of names that are gone, no more than a limit is remembered, the latest first")
  func room() throws {
    let cookies = DirectoryCookies()
    let width = DirectoryCookies.remembered
    let cookie = try #require(cookies.refresh(try listing([width * 9])).cookies.first)
    for round in 0..<3 { _ = cookies.refresh(try listing(round * width..<(round + 1) * width)) }
    #expect(cookies.refresh(try listing([width * 9])).cookies != [cookie])
    for round in 4..<100 { _ = cookies.refresh(try listing(round * 10..<round * 10 + 10)) }
    #expect(cookies.snapshot?.listing.items.count == 10)
    #expect(cookies.snapshot?.order.count == 10)
  }
}

@Suite struct InodeNumbersTests {
  @Test("equal for one file, different for any two, also where numbers do not fit")
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

  @Test("a directory's depends on its parent and its name alone, and is no file's")
  func directories() {
    let number = InodeNumbers.directory(parent: InodeNumbers.root, name: "Resources")
    #expect(number == InodeNumbers.directory(parent: InodeNumbers.root, name: "Resources"))
    #expect(number >> 63 == 1)
    #expect(number != InodeNumbers.directory(parent: number, name: "Resources"))
    #expect(number != InodeNumbers.directory(parent: InodeNumbers.root, name: "resources"))
  }
}
