import Posix
import Testing

@testable import RemoteFiles

@Suite struct RemoteURLTests {
  private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
  private func text(_ bytes: [UInt8]?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

  @Test(
    "URLs of web servers are recognized, and only those",
    arguments: [
      ("http://h/a.zip", true), ("HTTPS://h", true), ("http://h:81/a", true), ("http://u:p@h/a", true),
      ("http://[::1]:8/a", true), ("http:///a", false), ("http://", false), ("http://:80/a", false),
      ("ftp://h/a", false), ("file:///a", false), ("/http://h/a", false), ("http:/h", false),
      ("http://h/a b", false), ("http://h/\u{1}", false), ("http://h\\@x/a", false), ("http://u@/a", false),
      ("http://#h", false),
    ])
  func recognized(given: String, isURL: Bool) { #expect((RemoteURL(bytes(given)) != nil) == isURL) }

  @Test(
    "what may be secret is not shown",
    arguments: [
      ("https://h/a.zip?sig=secret", "https://h/a.zip?..."), ("https://u:p@h:1/a", "https://h:1/a"),
      ("https://u:p@x@h/a?b", "https://h/a?..."), ("http://h?x", "http://h?..."), ("/a?b@c", "/a?b@c"),
      ("https://h/a.zip?sig=x!/Data/a?b", "https://h/a.zip?...!/Data/a?b"),
      ("https://h/a!/b", "https://h/a!/b"),
    ])
  func redacted(given: String, shown: String) { #expect(text(RemoteURL.redacted(bytes(given))) == shown) }

  @Test(
    "a URL ends where a folder in the archive follows",
    arguments: [
      ("http://h/a.zip!/b", "http://h/a.zip"), ("http://h/a.zip!", "http://h/a.zip"),
      ("http://h/a!b.zip", "http://h/a!b.zip"), ("http://h/a.zip!/b!/c", "http://h/a.zip"),
    ])
  func ends(given: String, url: String) {
    #expect(text(Array(bytes(given)[..<RemoteURL.end(of: bytes(given))])) == url)
  }

  @Test(
    "the path of a file URL",
    arguments: [
      ("file:///a/b%20c", "/a/b c"), ("FILE://localhost/a", "/a"), ("file://host/a", nil),
      ("file:///a%0", nil), ("file:///a%00", nil), ("file:///%zz", nil), ("http://h/a", nil),
      ("file:///a%2Fb%ff", "/a/b\u{fffd}"),
    ] as [(String, String?)])
  func local(given: String, path: String?) { #expect(text(RemoteURL.localPath(of: bytes(given))) == path) }

  @Test("a fragment is no part of what is asked for")
  func fragment() { #expect(text(RemoteURL(bytes("http://h/a#b"))?.text) == "http://h/a") }
}

@Suite struct ResponseHeadTests {
  private func head(_ lines: String...) -> ResponseHead {
    var head = ResponseHead()
    for line in lines { _ = head.add(ArraySlice((line + "\r\n").utf8)) }
    return head
  }

  @Test(
    "a part's place is read with checked numbers",
    arguments: [("bytes 0-9/10", 0, 10, 10), ("bytes 5-5/10", 5, 6, 10)]
      as [(String, UInt64, UInt64, UInt64)])
  func range(value: String, first: UInt64, end: UInt64, total: UInt64) {
    let head = head("HTTP/1.1 206 Partial Content", "Content-Range: \(value)")
    #expect(head.contentRange?.range == first..<end && head.contentRange?.total == total)
    #expect(head.fault == nil)
  }

  @Test(
    "what is no place of a part is refused",
    arguments: [
      "bytes 0-10/10", "bytes 9-8/10", "bytes -1-8/10", "bytes 0-9/*", "bytes */10", "0-9/10", "bytes 0-9",
      "bytes 0-9/10/2", "bytes 0-18446744073709551615/18446744073709551616",
      "bytes 0-9/18446744073709551615", "bytes +0-9/10", "bytes 0x0-9/10", "bytes 0-9-9/10", "", "bytes ",
    ])
  func wrongRange(value: String) {
    let head = head("HTTP/1.1 206 Partial Content", "Content-Range: \(value)")
    #expect(head.contentRange == nil && head.fault != nil)
  }

  @Test("only strong entity tags count, and only the last answer of several")
  func validators() {
    let last = head(
      "HTTP/1.1 302 Found", "ETag: \"a\"", "HTTP/2 200 ", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT")
    #expect(last.status == 200 && last.validator.entityTag.isEmpty)
    #expect(last.validator.time?.seconds == 784_111_777)
    #expect(head("HTTP/1.1 200 OK", "ETag: W/\"a\"").validator.isPresent == false)
    #expect(head("HTTP/1.1 200 OK", "eTaG:  \"a\" ").validator.entityTag == Array("\"a\"".utf8))
  }

  @Test(
    "lengths that contradict each other, and encodings, are faults",
    arguments: [
      ["Content-Length: 1", "Content-Length: 2"], ["Content-Length: -1"],
      ["Content-Length: 99999999999999999999"], ["Content-Encoding: gzip"],
    ])
  func faults(lines: [String]) {
    var head = head("HTTP/1.1 200 OK")
    for line in lines { _ = head.add(ArraySlice((line + "\r\n").utf8)) }
    #expect(head.fault != nil)
  }

  @Test(
    "dates that are none have no time",
    arguments: [
      "", "Sun, 06 Nov 1994 08:49:37", "Sun, 99 Nov 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT",
      "Sun, 06 Nov 99999999999 08:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT", "a b c d e GMT",
    ])
  func times(value: String) {
    #expect(Validator(entityTag: [], modified: Array(value.utf8)).time == nil)
  }
}
