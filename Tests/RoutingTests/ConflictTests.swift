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
    let overlaps = table.overlaps(of: route.pattern)
    do {
      try table.append(route)
      #expect(overlaps.count == overlaps.names.count && !overlaps.isIncomplete)
      return overlaps.names
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

  @Test(
    "a route inserted before another is searched before it, hidden by none and hides none, also after removals"
  )
  func insertion() throws {
    let pool = try patterns(100, seed: 5)
    let parsed = try urls.map { url throws(RoutingError) in try RouteURL(Array(url.text.utf8)) }
    var random = SplitMix64(seed: 6)
    var (refused, inserted) = (0, 0)
    for _ in 0..<400 {
      var table = RouteTable()
      var registered: [(name: String, set: URLSet)] = []
      for number in 0..<random.number(2...12) {
        if random.percent(20), let removed = registered.randomElement(using: &random)?.name {
          #expect(table.remove(name: removed) == 1)
          registered.removeAll { $0.name == removed }
        }
        let (pattern, set) = random.pick(pool)
        let route = try Route(name: "N\(number)", pattern: pattern)
        let place = registered.isEmpty ? 0 : random.number(0...registered.count)
        let isHidden =
          registered[..<place].contains { $0.set.covers(set) }
          || registered[place...].contains { set.covers($0.set) }
        do {
          if place < registered.count {
            try table.insert(route, before: registered[place].name)
            inserted += 1
          } else {
            try table.append(route)
          }
          #expect(!isHidden, "\(route)\n\(table.text)")
          registered.insert((route.name, set), at: place)
        } catch {
          #expect(isHidden && error.code == .shadowed, "\(route)\n\(table.text)")
          refused += 1
        }
        #expect(table.routes.map(\.name) == registered.map(\.name))
      }
      for _ in 0..<40 {
        let index = random.number(0...urls.count - 1)
        let expected = registered.first { $0.set.contains(index) }?.name
        #expect(try table.match(parsed[index])?.name == expected, "\(urls[index].text)\n\(table.text)")
      }
    }
    #expect(refused > 100 && inserted > 100)
    var table = RouteTable()
    let unknown = #expect(throws: RoutingError.self) {
      try table.insert(Route(name: "A", pattern: RoutePattern("s:A")), before: "B")
    }
    #expect(unknown?.code == .noRoute)
  }

  @Test(
    "thousands of routes inserted before others keep the order of a list",
    arguments: ["first", "last", "next", "any"])
  func order(place: String) throws {
    var random = SplitMix64(seed: 8)
    var table = try table([("End", "l:(end)A")])
    var expected = ["End"]
    var last = 0
    for number in 0..<2000 {
      switch place {
      case "first": last = 0
      case "last": last = expected.count - 1
      case "next": last = min(last + random.number(0...1), expected.count - 1)
      default: last = random.number(0...expected.count - 1)
      }
      let route = try Route(name: "N\(number)", pattern: RoutePattern("l:(a\(number))A/s:B"))
      try table.insert(route, before: expected[last])
      expected.insert(route.name, at: last)
      if number % 7 == 6 {
        let removed = expected.remove(at: random.number(0...expected.count - 2))
        #expect(table.remove(name: removed) == 1)
        last = min(last, expected.count - 1)
      }
    }
    #expect(table.routes.map(\.name) == expected)
    // Which of two overlapping routes wins depends on the order alone.
    for _ in 0..<100 {
      let other = random.number(0...expected.count - 1)
      try table.insert(Route(name: "All", pattern: RoutePattern("s:A/l:(x)B")), before: expected[other])
      let index = random.number(0...expected.count - 1)
      let winner = index < other ? expected[index] : "All"
      let text = expected[index] == "End" ? nil : "x:a\(expected[index].dropFirst())/x"
      if let text { #expect(try table.match(RouteURL(bytes(text)))?.name == winner) }
      table.remove(name: "All")
    }
  }

  @Test("each overlapping name is returned once, and at most 16 with the count of all")
  func once() throws {
    var table = try table([("A", "l:(a)K"), ("B", "l:(b)K"), ("A", "l:(c)K"), ("C", "x://i:K")])
    let overlaps = table.overlaps(of: try RoutePattern("s:K"))
    #expect(overlaps.names == ["A", "B", "C"] && overlaps.count == 4 && !overlaps.isIncomplete)
    for number in 0..<80 {
      try table.append(Route(name: "N\(number)", pattern: RoutePattern("l:(\(number))K")))
    }
    let more = table.overlaps(of: try RoutePattern("s:K"))
    #expect(more.names == ["A", "B", "C"] + (0..<13).map { "N\($0)" } && more.count == 84)
    for number in 80..<2000 {
      try table.append(Route(name: "N\(number)", pattern: RoutePattern("l:(\(number))K")))
    }
    let most = table.overlaps(of: try RoutePattern("s:K"))
    #expect(most.isIncomplete && most.count > 50 && most.names.count == 16)
  }

  @Test("a route of a built-in scheme is refused")
  func builtIn() throws {
    var table = RouteTable(builtInSchemes: ["rsrc"])
    let dead = try Route(name: "Dead", pattern: RoutePattern("RSRC://*:A"))
    let error = #expect(throws: RoutingError.self) { try table.append(dead) }
    #expect(error?.code == .shadowed)
    try table.append(Route(name: "All", pattern: RoutePattern("*:A")))
    #expect(throws: RoutingError.self) { try table.insert(dead, before: "All") }
    table.removeAll()
    #expect(throws: RoutingError.self) { try table.append(dead) }
    #expect(table.textSize == 0)
  }

  @Test("a thousand patterns that differ only in required parameters")
  func manyParameters() throws {
    var table = RouteTable()
    for index in 0..<1000 {
      let route = try Route(name: "N\(index)", pattern: RoutePattern("s:A?key\(index)=s:B"))
      if index < 100 { #expect(table.overlaps(of: route.pattern).count == index) }
      try table.append(route)
    }
    let match = try table.match(RouteURL(bytes("x:a?other=1&key900=v&key901=w")))
    #expect(match?.name == "N900" && match?.query == "other=1&key901=w")
  }

  @Test(
    "of a thousand routes that differ only in optional parameters, few are tested for covering another",
    arguments: ["s:A?p%=i?:B", "s?:A?p%=f?[]:B", "**:A?p=l?:(%)B", "s:A?p=i?:B&p%=i?:C"])
  func guards(pattern: String) throws {
    func numbered(_ number: Int) throws -> RoutePattern {
      let parts = pattern.split(separator: "%", omittingEmptySubsequences: false)
      return try RoutePattern(parts.joined(separator: "\(number)"))
    }
    var table = RouteTable()
    var requirements = RequirementIndex()
    for number in 0..<1000 {
      let route = try Route(name: "N\(number)", pattern: numbered(number))
      try table.append(route)
      requirements.add(route.pattern, at: RouteIndex(order: UInt64(number), slot: UInt32(number)))
    }
    var tests = 0
    let new = try numbered(1000)
    let covering = CoverSearch.first(covering: new, in: table.trie) { _ in
      tests += 1
      return false
    }
    #expect(covering == nil && tests <= 2)
    #expect(requirements.candidates(coveredBy: new) == [])
    #expect(throws: RoutingError.self) { try table.append(Route(name: "Same", pattern: numbered(500))) }
    #expect(table.remove(name: "N500") == 1)
    try table.append(Route(name: "Same", pattern: numbered(500)))
  }

  @Test("registration is linear, however the routes overlap")
  func linear() throws {
    let shapes: [(String, (Int) -> String)] = [
      ("distinct", { "l:(a\($0))A/s:B" }), ("last component", { "l:(a)A/l:(b\($0))B" }),
      ("crossing", { $0 % 2 == 0 ? "l:(a\($0))A/s:B" : "s:A/l:(b\($0))B" }),
      ("dead ends", { $0 % 2 == 0 ? "l:(a\($0))A/l:(x)B" : "s:A/l:(b\($0))B" }),
      ("numbers", { $0 % 2 == 0 ? "l:(a\($0))A/s:B" : "i:A/l:(b\($0))B" }),
      ("schemes", { "x\($0)://*:A" }), ("lengths", { "l:(a\($0))A/**:B" }),
      ("parameters", { "s:A?p\($0)=s:B" }), ("values", { "s:A?p=l:(\($0))B" }),
      ("optional parameters", { "s:A?p\($0)=i?:B" }), ("optional arrays", { "s?:A?p\($0)=f?[]:B" }),
      ("optional values", { "**:A?p=l?:(\($0))B" }), ("a common one", { "s:A?p=i?:B&p\($0)=i?:C" }),
    ]
    for (name, pattern) in shapes {
      // Before there are as many routes as a search takes steps, each route takes longer than the one before.
      let first = OverlapSearch.maxSteps
      var filled = RouteTable()
      for number in 0..<first { try filled.append(Route(name: "N", pattern: RoutePattern(pattern(number)))) }
      try LinearTime.check(name: name) { size in
        try (first..<first + size / 512).map { try Route(name: "N", pattern: RoutePattern(pattern($0))) }
      } parse: { routes in
        var table = filled
        for route in routes {
          _ = table.overlaps(of: route.pattern)
          try table.append(route)
        }
        #expect(table.count == first + routes.count && table.textSize == table.text.utf8.count)
      }
    }
  }

  @Test(
    "insertion is linear, whatever the place", arguments: ["the end", "the start", "the last one"],
    [
      "l:(a%)A/s:B", "s:A/l:(a%)B", "s:A/l:(a%)B/**:C", "a%://s:A", "s:A?p%=i:B", "s:A?p=l:(%)B",
      "s:A?p%=i?:B",
      "s:A?p=l?:(%)B",
    ])
  func linearInsertion(place: String, pattern: String) throws {
    try LinearTime.check(name: "\(pattern) before \(place)") { size in
      try (0..<size / 512).map { number in
        // Every other one crosses all of these.
        let crossing = "l:(a%)A/s:B/**:C?q%=i?:D"
        let text = (number.isMultiple(of: 2) ? pattern : crossing)
          .split(separator: "%", omittingEmptySubsequences: false).joined(separator: "\(number)")
        return try Route(name: "N\(number)", pattern: RoutePattern(text))
      }
    } parse: { routes in
      var table = RouteTable()
      try table.append(routes[0])
      for index in routes.indices.dropFirst() {
        let first = place == "the start" ? routes[index - 1] : routes[0]
        let other = place == "the last one" ? routes[(index - 1) / 2] : first
        try table.insert(routes[index], before: other.name)
      }
      #expect(table.count == routes.count)
    }
  }
}
