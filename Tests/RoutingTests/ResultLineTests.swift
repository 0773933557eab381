import Testing

@testable import Routing

/// Result lines of the control file, and replies of the status protocol.
@Suite struct ResultLineTests {
  private func line(_ text: String) -> ResultLine? { ResultLine(Array(text.utf8)[...]) }

  private func posted(_ name: String, url: String = "x:1") -> ResultLine? {
    line(
      #"{"sequence":7,"time":"t","url":"\#(url)","outcome":"posted","notification":"\#(name)","userInfo":{}}"#
    )
  }

  @Test("only complete results with a sequence number parse")
  func numbers() {
    #expect(line(#"{"sequence":1}"#)?.sequence == 1)
    #expect(line(#"{"sequence":18446744073709551615,"time":"t"}"#)?.sequence == .max)
    for text in [
      "", "route A s:A", "{", #"{"sequence":}"#, #"{"sequence":12"#, #"{"sequence":18446744073709551616}"#,
      #"{"time":"t","sequence":1}"#, #"{"sequence":0}"#, #"{"sequence":00,"time":"t"}"#,
    ] {
      #expect(line(text) == nil, "\(text)")
    }
  }

  @Test("a result belongs to its URL only")
  func urls() {
    let quoted = posted("A", url: #"x:\"q\"\\"#)
    #expect(quoted?.isResult(of: Array(#"x:"q"\"#.utf8)) == true)
    #expect(posted("A")?.isResult(of: Array("x:1".utf8)) == true)
    for other in ["x:", "x:11", "x:1 ", ""] {
      #expect(posted("A")?.isResult(of: Array(other.utf8)) == false, "\(other)")
    }
  }

  @Test("isPosted compares whole names")
  func names() {
    let names = { (names: String...) in names.map { Array($0.utf8) } }
    #expect(posted("Name")?.isPosted(as: names("Other", "Name")) == true)
    for name in ["Nam", "Names", "name", ""] { #expect(posted("Name")?.isPosted(as: names(name)) == false) }
    let matched =
      #"{"sequence":7,"time":"t","url":"x:1","outcome":"matched","notification":"Name","userInfo":{}}"#
    #expect(line(matched)?.isPosted(as: names("Name")) == false)
  }

  @Test("a URL cannot imitate members of the result")
  func injection() throws {
    let words = #"x:","outcome":"rejected","errno":"ENOENT"#
    let result = RouteResult(
      sequence: 3, time: Timestamp(seconds: 0, nanoseconds: 0), url: Array(words.utf8),
      outcome: .applied())
    let read = try #require(ResultLine(result.json[...]))
    #expect(!read.isRejected && read.isResult(of: Array(words.utf8)))
    #expect(!read.isResult(of: Array("x:".utf8)))
    let rejected = RouteResult(
      sequence: 3, time: Timestamp(seconds: 0, nanoseconds: 0), url: Array("x:".utf8),
      outcome: .rejected(RoutingError(.noRoute, "no")))
    #expect(try #require(ResultLine(rejected.json[...])).isRejected)
  }

  @Test("a result belongs to its URL if that is not UTF-8")
  func bytes() throws {
    let url: [UInt8] = Array("x:".utf8) + [0xFF, 0x41]
    let result = RouteResult(
      sequence: 3, time: Timestamp(seconds: 0, nanoseconds: 0), url: url, outcome: .applied())
    #expect(try #require(ResultLine(result.json[...])).isResult(of: url))
  }

  @Test("pages of complete, truncated and malformed replies")
  func pages() {
    func page(_ reply: [UInt8], after done: Int) -> [UInt8] {
      Array(StatusProtocol.page(in: reply, after: done).bytes)
    }
    let reply: [UInt8] = [5, 0, 0, 0, 1, 2, 3, 0, 0]
    #expect(StatusProtocol.page(in: reply, after: 0).length == 5)
    #expect(page(reply, after: 0) == [1, 2, 3, 0, 0])
    #expect(page(reply, after: 2) == [1, 2, 3], "what follows the text is none of it")
    #expect(page(reply, after: 9) == [])
    #expect(page([0xFF, 0xFF, 0xFF, 0xFF, 7], after: 0) == [7])
    #expect(StatusProtocol.page(in: [1, 0], after: 0) == ([], 0))
  }

  @Test("a control file's name is one path component")
  func controlName() {
    for name in [".routes", "r", "..a", "a b", String(repeating: "x", count: 255)] {
      #expect(StatusProtocol.isControlName(Array(name.utf8)), "\(name)")
    }
    for name in [
      "", ".", "..", "/", "../x", "a/b", "/etc/passwd", "a\0", String(repeating: "x", count: 256),
    ] {
      #expect(!StatusProtocol.isControlName(Array(name.utf8)), "\(name)")
    }
  }
}
