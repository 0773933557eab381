import Testing

@testable import Routing

/// The results of the control file as `route` and `listen` read them.
@Suite struct ResultLineTests {
  private func line(_ text: String) -> ResultLine? { ResultLine(Array(text.utf8)[...]) }

  private func posted(_ name: String, url: String = "x:1") -> ResultLine? {
    line(
      #"{"sequence":7,"time":"t","url":"\#(url)","outcome":"posted","notification":"\#(name)","userInfo":{}}"#
    )
  }

  @Test("a result is known by its number; what is none, or is cut off, is not")
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

  @Test("it is of the URL that it names, and of no other")
  func urls() {
    let quoted = posted("A", url: #"x:\"q\"\\"#)
    #expect(quoted?.isResult(of: Array(#"x:"q"\"#.utf8)) == true)
    #expect(posted("A")?.isResult(of: Array("x:1".utf8)) == true)
    for other in ["x:", "x:11", "x:1 ", ""] {
      #expect(posted("A")?.isResult(of: Array(other.utf8)) == false, "\(other)")
    }
  }

  @Test("it is posted under its whole name only")
  func names() {
    let names = { (names: String...) in names.map { Array($0.utf8) } }
    #expect(posted("Name")?.isPosted(as: names("Other", "Name")) == true)
    for name in ["Nam", "Names", "name", ""] { #expect(posted("Name")?.isPosted(as: names(name)) == false) }
    let matched =
      #"{"sequence":7,"time":"t","url":"x:1","outcome":"matched","notification":"Name","userInfo":{}}"#
    #expect(line(matched)?.isPosted(as: names("Name")) == false)
  }

  @Test("what a URL has in it is not taken for the result's own words")
  func disguise() throws {
    let words = #"x:","outcome":"rejected","errno":"ENOENT"#
    let result = RouteResult(
      sequence: 3, time: Timestamp(seconds: 0, nanoseconds: 0), url: Array(words.utf8),
      outcome: .applied(overlaps: []))
    let read = try #require(ResultLine(result.json[...]))
    #expect(!read.isRejected && read.isResult(of: Array(words.utf8)))
    #expect(!read.isResult(of: Array("x:".utf8)))
    let rejected = RouteResult(
      sequence: 3, time: Timestamp(seconds: 0, nanoseconds: 0), url: Array("x:".utf8),
      outcome: .rejected(RoutingError(.noRoute, "no")))
    #expect(try #require(ResultLine(rejected.json[...])).isRejected)
  }

  @Test("a URL that is no UTF-8 is found again in its result")
  func bytes() throws {
    let url: [UInt8] = Array("x:".utf8) + [0xFF, 0x41]
    let result = RouteResult(
      sequence: 3, time: Timestamp(seconds: 0, nanoseconds: 0), url: url, outcome: .applied(overlaps: []))
    #expect(try #require(ResultLine(result.json[...])).isResult(of: url))
  }

  @Test("pages of a mount's answer, whole, cut and absurd")
  func pages() {
    func page(_ answer: [UInt8], after done: Int) -> [UInt8] {
      Array(StatusProtocol.page(in: answer, after: done).bytes)
    }
    let answer: [UInt8] = [5, 0, 0, 0, 1, 2, 3, 0, 0]
    #expect(StatusProtocol.page(in: answer, after: 0).length == 5)
    #expect(page(answer, after: 0) == [1, 2, 3, 0, 0])
    #expect(page(answer, after: 2) == [1, 2, 3], "what follows the text is none of it")
    #expect(page(answer, after: 9) == [])
    #expect(page([0xFF, 0xFF, 0xFF, 0xFF, 7], after: 0) == [7])
    #expect(StatusProtocol.page(in: [1, 0], after: 0) == ([], 0))
  }

  @Test("a control file's name leads nowhere else")
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
