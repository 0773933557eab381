import Posix
import Routing
import TestSupport
import Testing

@testable import Volume

@Suite struct ControlContentTests {
  private func content(_ routes: String...) throws -> ControlContent {
    var table = RouteTable()
    for route in routes {
      guard case .route(let route, nil) = try ControlCommand(Array(route.utf8)) else {
        throw TestFailure("no route")
      }
      try table.append(route)
    }
    return ControlContent(table)
  }

  @Test("the routes are followed by the results, numbered from 1")
  func order() throws {
    var content = try content("route A i:A")
    #expect(String(decoding: content.text, as: UTF8.self) == "route A i:A\n")
    let first = content.record(Array("x:1".utf8).span) { _ in .applied() }
    #expect(first == nil)
    let failure = content.record(Array("reset".utf8).span) { routes throws(RoutingError) in
      routes.removeAll()
      try routes.append(Route(name: "B", pattern: RoutePattern("s:B")))
      throw RoutingError(.malformed, "no")
    }
    #expect(failure?.code == .malformed)
    let lines = content.text.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
    #expect(lines.count == 3)
    #expect(lines[1].hasPrefix(#"{"sequence":1,"time":""#) && lines[1].contains(#""url":"x:1""#))
    #expect(lines[2].hasPrefix(#"{"sequence":2,"#) && lines[2].contains(#""errno":"EINVAL","error":"no""#))
    #expect(content.sequence == 2)
  }

  @Test("every result advances the mtime, and the size matches the text")
  func sizes() throws {
    var content = try content()
    #expect(content.size == 0 && content.text.isEmpty)
    var modified = content.modified
    for number in 1...1500 {
      _ = content.record(Array("x:\(number)".utf8).span) { routes throws(RoutingError) in
        if number % 2 == 1 {
          try routes.append(Route(name: "N", pattern: RoutePattern("scheme\(number)://s:A")))
        } else {
          routes.remove(name: "N")
        }
        return .applied()
      }
      guard content.modified > modified, content.size == content.text.count else {
        Issue.record("result \(number)")
        return
      }
      modified = content.modified
    }
  }

  @Test("the text begins with the table's, however routes come and go")
  func tableText() throws {
    var random = SplitMix64(seed: 6)
    var content = try content("route N0 x0://s:A")
    for number in 1...300 {
      _ = content.record(Array("".utf8).span) { routes throws(RoutingError) in
        if random.percent(70) {
          try routes.append(Route(name: "N\(number)", pattern: RoutePattern("x\(number)://s:A")))
        } else if random.percent(95) {
          routes.remove(name: "N\(random.number(0...number))")
        } else {
          routes.removeAll()
        }
        return .applied()
      }
      #expect(content.text.starts(with: content.table.text.utf8))
      #expect(content.size == content.text.count)
    }
  }

  @Test("the results from any position on, in pages of any size")
  func pages() throws {
    var content = try content()
    let empty = content.page(from: ResultsProtocol.Position(1), limit: 100)
    #expect(empty.first == 1 && empty.newest == 0 && empty.text.isEmpty)
    for number in 1...2000 { _ = content.record(Array("x:\(number)".utf8).span) { _ in .applied() } }
    for limit in [1, 10, 100, 1000, 16_000] {
      var text: [UInt8] = []
      var (sequence, offset) = (UInt64(limit == 1 ? 1990 : 1), 0)
      while sequence <= 2000 {
        let page = content.page(
          from: ResultsProtocol.Position(sequence, offset: UInt64(offset)), limit: limit)
        if page.first != sequence {
          #expect(page.first == 977 && sequence == 1)
          (sequence, offset) = (page.first, 0)
        }
        #expect(page.newest == 2000 && !page.text.isEmpty && page.text.count <= limit)
        text += page.text
        let ends = page.text.count { $0 == UInt8(ascii: "\n") }
        offset =
          page.text.lastIndex(of: UInt8(ascii: "\n")).map { page.text.endIndex - $0 - 1 }
          ?? offset + page.text.count
        sequence += UInt64(ends)
      }
      #expect(content.text.suffix(text.count).elementsEqual(text))
      #expect(text.count { $0 == UInt8(ascii: "\n") } == (limit == 1 ? 11 : 1024))
    }
  }

  @Test("positions beyond the results and beyond a line")
  func strangePositions() throws {
    var content = try content()
    _ = content.record(Array("x:1".utf8).span) { _ in .applied() }
    let later = content.page(from: ResultsProtocol.Position(7, offset: 3), limit: 100)
    #expect(later.first == 7 && later.newest == 1 && later.text.isEmpty)
    let latest = content.page(from: ResultsProtocol.Position(.max, offset: .max), limit: 100)
    #expect(latest.first == .max && latest.newest == 1 && latest.text.isEmpty)
    let beyond = content.page(from: ResultsProtocol.Position(1, offset: .max), limit: 100)
    #expect(beyond.first == 1 && beyond.text.isEmpty)
    let zero = content.page(from: ResultsProtocol.Position(0, offset: 1), limit: 10)
    #expect(zero.first == 1 && zero.text.elementsEqual(#"{"sequence"#.utf8.prefix(10)))
  }

  @Test("a successor has the same text, whatever was read before")
  func successors() throws {
    var random = SplitMix64(seed: 7)
    let memory = try SharedMemory(name: "test", size: SharedRegions.size)
    var content = ControlContent(RouteTable(), log: ControlLog(memory))
    for number in 1...12_000 {
      let line = Self.line(&random, number)
      let origin = ControlLog.Origin(request: UInt64(number), start: 0, end: UInt64(line.utf8.count))
      Self.run(line, origin, in: &content)
      if random.number(0...299) > 0 { continue }
      var successor = ControlContent(RouteTable(), log: ControlLog(memory))
      guard successor.sequence == content.sequence,
        successor.progress(of: UInt64(number))?.origin.end == origin.end, successor.text == content.text
      else {
        Issue.record("after \(number) lines")
        return
      }
      // The other has made its lines.
      content = ControlContent(RouteTable(), log: ControlLog(memory))
    }
  }

  private static func run(_ line: String, _ origin: ControlLog.Origin, in content: inout ControlContent) {
    let command = try? ControlCommand(line.utf8)
    var text = Array(line.utf8)
    if case .match(let url) = command { text = url.text }
    _ = content.record(text.span, origin) { routes throws(RoutingError) in
      switch command {
      case .post(let url): return .posted(try routes.found(url), listeners: text.count % 3)
      case .match(let url): return .matched(try routes.found(url))
      case let command?: return .applied(try routes.change(command))
      case nil: throw RoutingError(.malformed, "no")
      }
    }
  }

  private static func line(_ random: inout SplitMix64, _ number: Int) -> String {
    switch random.number(0...99) {
    case 0..<5: "route N\(number) l:(a\(random.number(0...50)))A/s:B"
    case 5..<7: "route N\(number) s:A/l:(b\(random.number(0...50)))B"
    case 7..<9: "unroute N\(random.number(max(0, number - 200)...number))"
    case 9: random.percent(5) ? "reset" : "route bad"
    case 10..<20: "match x://a\(random.number(0...50))/b\(random.number(0...50))"
    default:
      "x://a\(random.number(0...50))/b\(random.number(0...50))?q=\(number)\(String(repeating: "x", count: 400))#f"
    }
  }
}
