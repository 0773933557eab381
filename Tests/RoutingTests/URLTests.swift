import Testing

@testable import Routing

@Suite struct URLTests {
  @Test("a URL matched against a pattern", arguments: URLCase.all)
  func cases(_ example: URLCase) throws {
    let routes = try table([("N", example.pattern)])
    #expect(outcome(example.url, routes) == example.expected)
  }

  private func outcome(_ url: String, _ routes: RouteTable) -> String {
    do throws(RoutingError) {
      return try routes.match(RouteURL(bytes(url)))?.shown ?? "none"
    } catch {
      #expect(error.code == .malformed)
      return "error \(error.column ?? 0)"
    }
  }

  @Test("there are at least 150 unique cases")
  func count() {
    #expect(Set(URLCase.all.map { "\($0.pattern) \($0.url)" }).count == URLCase.all.count)
    #expect(URLCase.all.count >= 150)
  }

  @Test("the parts of a URL")
  func parts() throws {
    let url = try RouteURL(bytes("RSRC://Host/caf%E9%20au/lait?x#y%20z"))
    #expect(url.scheme == "rsrc" && url.hasHost && url.fragment == "y%20z")
    #expect(url.components == [bytes("Host"), bytes(#"caf\xE9 au"#), bytes("lait")])
    #expect(try !RouteURL(bytes("rsrc:///logo.png")).hasHost)
    #expect(url.text == bytes("RSRC://Host/caf%E9%20au/lait?x#y%20z"))
    #expect(url.host == bytes("Host") && url.segments == [bytes(#"caf\xE9 au"#), bytes("lait")])
    #expect(url.parameter("x") == [] && url.parameter("y") == nil)
    let other = try RouteURL(bytes("rsrc:///a//b?l%6Fc=f%72&loc=en&=c"))
    #expect(other.host == nil && other.segments == [bytes("a"), bytes("b")])
    #expect(other.parameter("loc") == bytes("fr") && other.parameter("") == bytes("c"))
  }

  @Test("a URL of maximum length is accepted, a longer one is not")
  func length() throws {
    let routes = try table([("N", "s:A")])
    let longest = bytes("x:") + Array(repeating: UInt8(ascii: "a"), count: RouteURL.maxLength - 2)
    let match = try #require(try routes.match(RouteURL(longest)))
    #expect(match["A"] == .text(String(repeating: "a", count: RouteURL.maxLength - 2)))
    let error = #expect(throws: RoutingError.self) { try RouteURL(longest + bytes("a")) }
    #expect(error?.code == .tooLong)
  }

  @Test("the maximum number of parameters, and one more")
  func parameters() throws {
    let many = Array(repeating: "a=1", count: RouteURL.maxParameters).joined(separator: "&")
    #expect(try RouteURL(bytes("x:a?" + many)).parameters.count == RouteURL.maxParameters)
    let error = #expect(throws: RoutingError.self) { try RouteURL(bytes("x:a?" + many + "&b")) }
    #expect(error?.code == .malformed && error?.offset == 4 + many.utf8.count + 1)
  }

  @Test("the error for an unmatched URL includes the URL")
  func unmatched() throws {
    #expect(
      "\(RoutingError.noRoute(for: try RouteURL(bytes(#"x://nobody/h\xFFme"#))))"
        == "no route matches x://nobody/h%FFme")
  }
}
