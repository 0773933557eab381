import Routing
import TestSupport
import Testing

@testable import bundlefs

/// Files of routes, as `routes=` names them.
@Suite struct RoutesFileTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func load(_ text: String, into table: inout RouteTable) throws {
    let file = folder / "routes"
    try file.write(text)
    try RoutesFile(file.bytes).load(into: &table)
  }

  private func failure(_ text: String) throws -> String {
    let failure = try #require(throws: Failure.self) {
      var table = RouteTable()
      try load(text, into: &table)
    }
    #expect(failure.status == 1)
    return failure.message
  }

  @Test("routes are registered in order; blank lines, comments and results are passed over")
  func order() throws {
    var table = RouteTable()
    try load("# mine\r\n\n  \t\nroute  B   s:B/i:C \r\n{\"sequence\":1}\nroute A /i:A", into: &table)
    #expect(table.text == "route B s:B/i:C\nroute A i:A\n")
    try load("route A i:A/i:B/i:C\n", into: &table)
    #expect(table.routes.map(\.name) == ["B", "A", "A"])
  }

  @Test("a table's text restores the table")
  func restored() throws {
    var table = RouteTable()
    try load("route A x://s:A/l:(%20b%2Fc)B\nroute B s:A/*:B?q=i?:C&r=l:(%26)D\n", into: &table)
    var other = RouteTable()
    try load(table.text, into: &other)
    #expect(other.text == table.text && other.count == 2)
  }

  @Test("an empty file has no routes, and is no error")
  func empty() throws {
    var table = RouteTable()
    try load("", into: &table)
    #expect(table.count == 0)
  }

  @Test("an error names the file, the line and the column")
  func places() throws {
    let file = (folder / "routes").text
    #expect(try failure("route A s:A\n\nroute B s:A/q:B\n").hasPrefix("routes \(file):3:13: "))
    #expect(try failure("route A s:A\r\nnonsense").hasPrefix("routes \(file):2:1: "))
    #expect(try failure("route A s:A\nroute B s:B\n").hasPrefix("routes \(file):2:1: s:B never matches"))
  }

  @Test(
    "nothing but routes may stand there",
    arguments: ["x://h/p", "match x:1", "unroute A", "reset", "bundlefs:///sync"])
  func others(line: String) throws {
    #expect(try failure("route A s:A\n  \(line)\n").contains(":2:1: only 'route NAME PATTERN'"))
  }

  @Test("a line that is too long is told by its place, whatever it begins with")
  func tooLong() throws {
    let message = try failure("\nroute A s:\(String(repeating: "k", count: 65536))\n")
    #expect(message.contains(":2:1: ") && message.utf8.count < 500)
  }

  @Test("a file that is missing is named")
  func missing() throws {
    let file = folder / "nothing"
    var table = RouteTable()
    let failure = try #require(throws: Failure.self) { try RoutesFile(file.bytes).load(into: &table) }
    #expect(failure.status == 1 && failure.message.contains(file.text))
    let directory = try #require(throws: Failure.self) {
      try RoutesFile(folder.path.bytes).load(into: &table)
    }
    #expect(directory.message.contains(folder.path.text))
  }
}
