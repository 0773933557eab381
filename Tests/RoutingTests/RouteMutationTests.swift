import TestSupport
import Testing

@testable import Routing

/// The parsers accept or reject mutated input without traps; accepted values round-trip.
@Suite struct RouteMutationTests {
  private static let rounds = 200_000
  private static let seeds = [
    "ccfurlresponder://user@animal:80/platypus/3.1/4?a=b&c=%20#f",
    "x://[2001:db8::1.2.3.4]/a%2Fb/-9223372036854775808",
    "x://l:(animal)A/s:B/i:C/f:D/*:E?name=i:F&other=s?:G&third=l:(%2F)H", "route Name x://s:A/i:B?c=f?:C",
    "route A l:(text)A/f:B", "route B l:(b)A/*:C", "match x:a/b", "unroute Name", "reset", "# comment", "{}",
    "x:é/😀", "f:A/i:B", "s:Key/l:(text)Other",
    "l:(some text)A",
    "*:Rest?name=s:A",
  ].map { Array($0.utf8) }
  private static let marks = Array("%/:?#&=@[]()*silf0129-. \t\r\n".utf8) + [0, 0x7F, 0x80, 0xC3, 0xFF]

  /// A seed with bytes replaced, inserted, removed or copied.
  private func mutated(_ random: inout SplitMix64) -> [UInt8] {
    var text = random.pick(Self.seeds)
    for _ in 0..<random.number(1...4) {
      let offset = random.number(0...text.count)
      let byte = random.percent(80) ? random.pick(Self.marks) : UInt8(truncatingIfNeeded: random.next())
      switch random.number(0...3) {
      case 0: text.insert(byte, at: offset)
      case 1 where offset < text.count: text[offset] = byte
      case 2 where offset < text.count:
        text.removeSubrange(offset..<min(offset + random.number(1...6), text.count))
      default: text.insert(contentsOf: text.suffix(random.number(0...text.count)), at: offset)
      }
    }
    return text
  }

  @Test("URLs")
  func urls() {
    let accepted = countAccepted(seed: 11) { text throws(RoutingError) in
      let url = try RouteURL(text)
      let length = url.components.reduce(0) { $0 + $1.count }
      #expect(length <= text.count && !url.components.contains([]), "\(text)")
    }
    #expect(accepted > Self.rounds / 20 && accepted < Self.rounds)
  }

  @Test("patterns")
  func patterns() {
    let accepted = countAccepted(seed: 12) { text throws(RoutingError) in
      let pattern = try RoutePattern(text)
      #expect(try RoutePattern(pattern.description) == pattern, "\(text)")
      #expect(pattern.covers(pattern) && pattern.overlaps(pattern))
    }
    #expect(accepted > Self.rounds / 50 && accepted < Self.rounds)
  }

  /// Parses mutated texts and checks the offsets of errors.
  /// - Returns: The number of accepted texts.
  private func countAccepted(seed: UInt64, parse: ([UInt8]) throws(RoutingError) -> Void) -> Int {
    var random = SplitMix64(seed: seed)
    var accepted = 0
    for _ in 0..<Self.rounds {
      let text = mutated(&random)
      do throws(RoutingError) {
        try parse(text)
        accepted += 1
      } catch {
        #expect((0...text.count).contains(error.offset ?? -1), "\(text)")
      }
    }
    return accepted
  }

  @Test("control commands, executed")
  func lines() {
    var random = SplitMix64(seed: 13)
    var table = RouteTable()
    var (routes, matches) = (0, 0)
    for _ in 0..<Self.rounds {
      let text = mutated(&random)
      do throws(RoutingError) {
        switch try ControlCommand(text) {
        case .route(let route, let other):
          if let other { try table.insert(route, before: other) } else { try table.append(route) }
          routes += 1
        case .post(let url), .match(let url):
          if try table.match(url) != nil { matches += 1 }
        case .unroute(let name): table.remove(name: name)
        case .reset: table.removeAll()
        case .ignored: break
        }
      } catch {
        #expect(error.offset.map { (0...text.count).contains($0) } ?? (error.code != .malformed), "\(text)")
      }
    }
    #expect(routes > 100 && matches > 100)
  }
}
