import Glibc
import Posix
import Routing
import Testing

@testable import ControlClient

/// What a daemon may reply, which may be another user's.
@Suite struct ResultReaderTests {
  private func line(_ number: UInt64) -> String { #"{"sequence":\#(number)}"# + "\n" }

  private func page(_ first: UInt64, _ newest: UInt64, _ text: String) -> ResultsProtocol.Page {
    ResultsProtocol.Page(first: first, newest: newest, text: Array(text.utf8)[...])
  }

  @Test("a line may come in parts")
  func parts() throws {
    var reader = ResultReader(after: 2)
    var batch = try reader.take(page(3, 4, #"{"seq"#))
    #expect(batch.results.isEmpty && batch.hasMore)
    #expect(reader.position == ResultsProtocol.Position(3, offset: 5))
    batch = try reader.take(page(3, 4, String(line(3).dropFirst(5)) + line(4)))
    #expect(batch.results.map(\.sequence) == [3, 4] && !batch.hasMore)
  }

  @Test("results that are no longer kept are missed")
  func missed() throws {
    var reader = ResultReader(after: 0)
    let batch = try reader.take(page(5, 5, line(5)))
    #expect(batch.missed == 1...4 && batch.results.map(\.sequence) == [5])
  }

  @Test("numbers that are not consecutive are refused")
  func numbers() {
    let pages = [
      page(1, 3, line(2)), page(1, 1, "text\n"), page(0, 1, line(1)), page(.max, .max, line(.max)),
      page(1, 3, line(1) + line(1)),
    ]
    for page in pages {
      var reader = ResultReader(after: 0)
      #expect(throws: Errno(rawValue: EPROTO)) { try reader.take(page) }
    }
  }

  @Test("a reader does not wait for what never comes")
  func endless() throws {
    var reader = ResultReader(after: 0)
    #expect(throws: Errno(rawValue: EPROTO)) { try reader.take(page(1, 9, "")) }
    reader = ResultReader(after: 0)
    let part = page(1, 1, String(repeating: "a", count: 1 << 20))
    #expect(throws: Errno(rawValue: EPROTO)) {
      for _ in 0...(ResultReader.lineLimit >> 20) { _ = try reader.take(part) }
    }
  }

  @Test("an environment has names only that a pattern can have, and no NUL")
  func environment() throws {
    let json =
      #"{"sequence":1,"url":"x:\u0000","outcome":"posted","userInfo":{"A":"b","C=D":"e","F\u0000":"g","H":1}}"#
    let result = try #require(ResultLine(Array(json.utf8)[...]))
    #expect(
      result.environment.map { String(decoding: $0, as: UTF8.self) }.sorted() == [
        "BUNDLEFS_OUTCOME=posted", "BUNDLEFS_SEQUENCE=1", "BUNDLEFS_VALUE_A=b", "BUNDLEFS_VALUE_H=1",
      ])
  }
}
