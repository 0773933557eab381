import Routing
import TestSupport
import Testing

@testable import bundlefs

/// The files of `-o routes=FILE`.
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

  @Test("registers routes in order; ignores blank lines, comments and results")
  func order() throws {
    var table = RouteTable()
    try load("# mine\r\n\n  \t\nroute  B   s:B/i:C \r\n{\"sequence\":1}\nroute A /i:A", into: &table)
    #expect(table.text == "route B s:B/i:C\nroute A i:A\n")
    try load("route A i:A/i:B/i:C\n", into: &table)
    #expect(table.routes.map(\.name) == ["B", "A", "A"])
  }

  @Test("restores a table from its text")
  func restored() throws {
    var table = RouteTable()
    try load("route A x://s:A/l:(%20b%2Fc)B\nroute B s:A/*:B?q=i?:C&r=l:(%26)D\n", into: &table)
    var other = RouteTable()
    try load(table.text, into: &other)
    #expect(other.text == table.text && other.count == 2)
  }

  @Test("accepts an empty file")
  func empty() throws {
    var table = RouteTable()
    try load("", into: &table)
    #expect(table.count == 0)
  }

  @Test("an error names the file, the line and the column")
  func position() throws {
    let file = (folder / "routes").text
    #expect(try failure("route A s:A\n\nroute B s:A/q:B\n").hasPrefix("routes \(file):3:13: "))
    #expect(try failure("route A s:A\r\nnonsense").hasPrefix("routes \(file):2:1: "))
    #expect(try failure("route A s:A\nroute B s:B\n").hasPrefix("routes \(file):2:1: s:B never matches"))
  }

  @Test(
    "rejects lines other than routes",
    arguments: ["x://h/p", "match x:1", "unroute A", "reset", "bundlefs:///sync"])
  func others(line: String) throws {
    #expect(try failure("route A s:A\n  \(line)\n").contains(":2:1: only 'route NAME PATTERN'"))
  }

  @Test("the error for a line that is too long has its position and is short")
  func tooLong() throws {
    let message = try failure("\nroute A s:\(String(repeating: "k", count: 65536))\n")
    #expect(message.contains(":2:1: ") && message.utf8.count < 500)
  }

  @Test("the error for a missing file names it")
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
