import TestSupport
import Testing

@testable import Routing

/// A bit set of the URLs that a pattern matches.
private struct URLSet {
  private var words: [UInt64]

  init(_ pattern: ModelPattern, of urls: [ModelURL]) {
    words = Array(repeating: 0, count: (urls.count + 63) / 64)
    for (index, url) in urls.enumerated() where pattern.matches(url) {
      words[index / 64] |= 1 << (index % 64)
    }
  }

  func contains(_ index: Int) -> Bool { words[index / 64] >> (index % 64) & 1 == 1 }
  var isEmpty: Bool { words.allSatisfy { $0 == 0 } }
  func covers(_ other: URLSet) -> Bool { !zip(words, other.words).contains { $1 & ~$0 != 0 } }
  func overlaps(_ other: URLSet) -> Bool { zip(words, other.words).contains { $0 & $1 != 0 } }
}

/// Checks covering and overlap against the enumeration of all URLs over a small alphabet.
@Suite struct ConflictTests {
  private let urls = ModelURL.all()

  private func patterns(_ count: Int, seed: UInt64) throws -> [(RoutePattern, URLSet)] {
    var random = SplitMix64(seed: seed)
    return try (0..<count).map { _ in
      let model = ModelPattern.random(&random)
      return (try RoutePattern(model.text), URLSet(model, of: urls))
    }
  }

  @Test("covers and overlaps agree with the sets of matching URLs")
  func pairs() throws {
    let patterns = try patterns(120, seed: 1)
    var counts = (covering: 0, overlapping: 0)
    for (left, leftSet) in patterns {
      #expect(!leftSet.isEmpty, "no URL shows that matches \(left)")
      for (right, rightSet) in patterns {
        #expect(left.covers(right) == leftSet.covers(rightSet), "\(left) covers \(right)")
        #expect(left.overlaps(right) == leftSet.overlaps(rightSet), "\(left) overlaps \(right)")
        if leftSet.covers(rightSet) { counts.covering += 1 }
        if leftSet.overlaps(rightSet) { counts.overlapping += 1 }
      }
    }
    // Rules out vacuous success: there are relations beyond each pattern with itself.
    #expect(counts.covering > 2 * patterns.count && counts.overlapping > counts.covering)
  }

  @Test("append rejects shadowed routes and returns overlaps; the first match wins")
  func tables() throws {
    let pool = try patterns(100, seed: 2)
    let parsed = try urls.map { url throws(RoutingError) in try RouteURL(Array(url.text.utf8)) }
    var random = SplitMix64(seed: 3)
    var (shadowed, matched) = (0, 0)
    for _ in 0..<400 {
      var table = RouteTable()
      var registered: [(name: String, set: URLSet)] = []
      for number in 0..<random.number(2...8) {
        let (pattern, set) = random.pick(pool)
        let isHidden = registered.contains { $0.set.covers(set) }
        let expected = isHidden ? nil : registered.filter { $0.set.overlaps(set) }.map(\.name)
        let route = try Route(name: "N\(number)", pattern: pattern)
        #expect(overlaps(of: route, in: &table) == expected)
        if isHidden { shadowed += 1 } else { registered.append((route.name, set)) }
      }
      for _ in 0..<40 {
        let index = random.number(0...urls.count - 1)
        let expected = registered.first { $0.set.contains(index) }?.name
        #expect(try table.match(parsed[index])?.name == expected, "\(urls[index].text)\n\(table.text)")
        if expected != nil { matched += 1 }
      }
    }
    #expect(shadowed > 100 && matched > 1000)
  }

  /// The names that a route overlaps; nil if it is shadowed.
  private func overlaps(of route: Route, in table: inout RouteTable) -> [String]? {
    do {
      return try table.append(route)
    } catch {
      #expect(error.code == .shadowed)
      return nil
    }
  }

  @Test("the error names the shadowing route")
  func message() throws {
    var table = try table([("All", "s:A/f:B"), ("Tail", "x://*:T")])
    let shadowed = try #require(throws: RoutingError.self) {
      try table.append(Route(name: "New", pattern: RoutePattern("l:(a)A/i:B")))
    }
    #expect("\(shadowed)" == "l:(a)A/i:B never matches: all its URLs go to the earlier route All (s:A/f:B)")
    let same = try #require(throws: RoutingError.self) {
      try table.append(Route(name: "New", pattern: RoutePattern("X://*:Other")))
    }
    #expect(same.message.hasSuffix("it is the same as that of the route Tail (x://*:T)"))
    #expect(table.count == 2)
  }

  @Test("each overlapping name is returned once")
  func once() throws {
    var table = try table([("A", "l:(a)K"), ("B", "l:(b)K"), ("A", "l:(c)K"), ("C", "x://i:K")])
    #expect(try table.append(Route(name: "All", pattern: RoutePattern("s:K"))) == ["A", "B", "C"])
  }

  @Test("a thousand patterns that differ only in required parameters")
  func manyParameters() throws {
    var table = RouteTable()
    for index in 0..<1000 {
      let overlaps = try table.append(
        Route(name: "N\(index)", pattern: RoutePattern("s:A?key\(index)=s:B")))
      #expect(overlaps.count == index)
    }
    let match = try table.match(RouteURL(bytes("x:a?other=1&key900=v&key901=w")))
    #expect(match?.name == "N900" && match?.query == "other=1&key901=w")
  }
}
