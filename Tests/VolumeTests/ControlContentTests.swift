import Posix
import Routing
import TestSupport
import Testing

@testable import Volume

@Suite struct ResultRingTests {
  private func line(_ number: Int, length: Int = 8) -> [UInt8] {
    let digits = Array("\(number)".utf8)
    return digits + Array(repeating: UInt8(ascii: "."), count: length - digits.count - 1) + [
      UInt8(ascii: "\n")
    ]
  }

  @Test("at most 1,024 lines are kept")
  func lines() {
    var ring = ResultRing()
    for number in 1...1024 { ring.append(line(number)) }
    #expect(ring.lines.count == 1024 && ring.lines.first == line(1))
    for number in 1025...3000 { ring.append(line(number)) }
    #expect(ring.lines == (1977...3000).map { line($0) })
    #expect(ring.size == 1024 * 8)
  }

  @Test("at most 256 KiB are kept, to the byte")
  func bytes() {
    var ring = ResultRing()
    for number in 1...256 { ring.append(line(number, length: 1024)) }
    #expect(ring.lines.count == 256 && ring.size == 256 * 1024)
    ring.append(line(257))
    #expect(ring.lines.count == 256 && ring.lines.first == line(2, length: 1024))
    #expect(ring.size == 255 * 1024 + 8)
  }

  @Test("the newest line is kept whatever its length")
  func oneLine() {
    var ring = ResultRing()
    ring.append(line(1))
    let long = line(2, length: 256 * 1024 + 1)
    ring.append(long)
    #expect(ring.lines == [long] && ring.size == long.count)
    ring.append(line(3))
    #expect(ring.lines == [line(3)] && ring.size == 8)
  }

  @Test("with lines of random lengths, the ring equals a list truncated at its front")
  func model() {
    var random = SplitMix64(seed: 4)
    var ring = ResultRing()
    var list: [[UInt8]] = []
    for number in 1...6000 {
      let length = random.percent(1) ? random.number(8...300_000) : random.number(8...(number % 2000 + 8))
      ring.append(line(number, length: length))
      list.append(line(number, length: length))
      var size = list.reduce(0) { $0 + $1.count }
      while list.count > 1024 || (size > 256 * 1024 && list.count > 1) { size -= list.removeFirst().count }
      guard ring.size == size else {
        Issue.record("after line \(number) there are \(ring.size) bytes, not \(size)")
        return
      }
      if number % 50 == 0, ring.lines != list {
        Issue.record("after line \(number) there are other lines")
        return
      }
    }
  }
}

@Suite struct ControlContentTests {
  private func content(_ routes: String...) throws -> ControlContent {
    var table = RouteTable()
    for route in routes {
      guard case .route(let route) = try ControlCommand(Array(route.utf8)) else {
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
    let first = content.record(Array("x:1".utf8)) { _ in .applied(overlaps: []) }
    #expect(first == nil)
    let failure = content.record(Array("reset".utf8)) { routes throws(RoutingError) in
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
      _ = content.record(Array("x:\(number)".utf8)) { routes throws(RoutingError) in
        if number % 2 == 1 {
          try routes.append(Route(name: "N", pattern: RoutePattern("scheme\(number)://s:A")))
        } else {
          routes.remove(name: "N")
        }
        return .applied(overlaps: [])
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
      _ = content.record([]) { routes throws(RoutingError) in
        if random.percent(70) {
          try routes.append(Route(name: "N\(number)", pattern: RoutePattern("x\(number)://s:A")))
        } else if random.percent(95) {
          routes.remove(name: "N\(random.number(0...number))")
        } else {
          routes.removeAll()
        }
        return .applied(overlaps: [])
      }
      #expect(content.text.starts(with: content.table.text.utf8))
      #expect(content.size == content.text.count)
    }
  }
}
