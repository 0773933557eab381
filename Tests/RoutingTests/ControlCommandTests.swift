import Testing

@testable import Routing

@Suite struct ControlCommandTests {
  @Test(
    "ignored lines",
    arguments: [
      "", "\n", "\r\n", "  \t ", "#", "# route A s:A", "  # x", "{}", #"{"sequence":1,"url":"x:a"}"#, " {",
      #"#\xFF\x00"#,
    ])
  func ignored(line: String) throws {
    #expect(try ControlCommand(bytes(line)) == .ignored)
  }

  @Test(
    "commands with any newline and whitespace",
    arguments: ["", "\n", "\r\n", " ", "\t\r\n", "\r"], ["", " ", "\t  "])
  func commands(end: String, start: String) throws {
    func read(_ line: String) throws -> ControlCommand { try ControlCommand(bytes(start + line + end)) }
    let url = try RouteURL(bytes("x://a/b"))
    #expect(try read("x://a/b") == .post(url))
    #expect(try read("match x://a/b") == .match(url))
    #expect(try read("match  \tx://a/b") == .match(url))
    let route = try Route(name: "Näme", pattern: RoutePattern("l:(Pure red)A/s:B"))
    #expect(try read("route Näme l:(Pure red)A/s:B") == .route(route))
    #expect(try read("route\tNäme   l:(Pure%20red)A/s:B") == .route(route))
    #expect(try read("unroute Näme") == .unroute("Näme"))
    #expect(try read("reset") == .reset)
  }

  @Test("a word before a colon is a scheme, even if it is a command's name")
  func schemes() throws {
    for line in ["match:a", "reset:", "route:x", "unroute:", "RSRC:///a", "bundlefs:///sync"] {
      #expect(try ControlCommand(bytes(line)) == .post(RouteURL(bytes(line))))
    }
  }

  @Test(
    "malformed lines fail with column and reason",
    arguments: [
      ("hello", 1, "reset is expected"), ("  hello", 3, "reset is expected"),
      ("MATCH x:a", 1, "reset is expected"),
      ("://a", 1, "reset is expected"), (#"\xFFoo"#, 1, "reset is expected"),
      ("resets", 1, "reset is expected"),
      ("match", 6, "followed by a URL"), ("match \r\n", 6, "followed by a URL"), ("match foo", 10, "scheme"),
      (" match x:a b", 11, "space"), ("x:a b", 4, "space"), ("x:%zz", 3, "hexadecimal"),
      (" \tx:%", 5, "hexadecimal"), ("match x:%", 9, "hexadecimal"), ("route", 6, "name is missing"),
      ("route  ", 6, "name is missing"), ("route N", 8, "pattern is missing"),
      ("route N  \t", 8, "pattern is missing"), ("route N x:A", 9, "unknown type"),
      (" route  N  s:A/x:B", 16, "unknown type"), (#"route \xFFN s:A"#, 7, "not UTF-8"),
      (#"route N\xFF s:A"#, 8, "not UTF-8"), (#"route a\xC2\xA0b s:A"#, 8, "no space"),
      (#"route N s:A\xFF"#, 12, "not UTF-8"), ("unroute", 8, "name is missing"),
      ("unroute A B", 11, "nothing may follow"), ("reset all", 7, "nothing may follow"),
      ("x:a\rb", 4, "control character"), ("x:a\r\r\n", 4, "control character"),
      (#"reset\x00"#, 1, "reset is expected"),
    ])
  func refused(line: String, column: Int, words: String) throws {
    let error = try #require(throws: RoutingError.self) { try ControlCommand(bytes(line)) }
    #expect(error.code == .malformed)
    #expect(error.column == column)
    #expect(error.message.contains(words), "\(error)")
  }

  @Test("commands are at most 64 KiB long; ignored lines may be longer")
  func length() throws {
    let longest = "x:" + String(repeating: "a", count: 64 * 1024 - 2)
    for end in ["", "\n", "\r\n"] {
      #expect(try ControlCommand(bytes(longest + end)) == .post(RouteURL(bytes(longest))))
      for line in [longest + "a", "reset" + String(repeating: " ", count: 64 * 1024) + "x"] {
        let error = #expect(throws: RoutingError.self) { try ControlCommand(bytes(line + end)) }
        #expect(error?.code == .tooLong)
      }
      #expect(try ControlCommand(bytes("#" + longest + end)) == .ignored)
      #expect(try ControlCommand(bytes("{" + longest + end)) == .ignored)
    }
  }

  @Test("a route may name the one that it precedes; a literal may look like that")
  func before() throws {
    let pattern = try RoutePattern("l:(a)A")
    let route = try Route(name: "N", pattern: pattern)
    #expect(try ControlCommand("route N l:(a)A before O\n".utf8) == .route(route, before: "O"))
    #expect(try ControlCommand("route N l:(a)A \t before  O \r\n".utf8) == .route(route, before: "O"))
    guard case .route(let literal, nil) = try ControlCommand("route N l:(a)b before c)K".utf8) else {
      Issue.record("the literal was split")
      return
    }
    #expect(literal.pattern.description == "l:(a)b%20before%20c)K")
    for line in [
      "route N before O", "route N l:(a)A before", "route N l:(a)A before O P", "route N l:(a)A after O",
    ] {
      #expect(throws: RoutingError.self) { try ControlCommand(line.utf8) }
    }
  }
}
