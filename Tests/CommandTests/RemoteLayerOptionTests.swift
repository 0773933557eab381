import Layers
import Testing

@testable import bundlefs

@Suite struct RemoteLayerOptionTests {
  @Test(
    "the colons of a URL's scheme, user and port separate no layers",
    arguments: [
      ("http://h/a.zip:b", ["http://h/a.zip", "b"]),
      ("a:https://h:8/a.zip!/d:b", ["a", "https://h:8/a.zip!/d", "b"]),
      ("https://u:p@h:8/a", ["https://u:p@h:8/a"]), (#"http\://h/a:b"#, ["http://h/a", "b"]),
      (#"http://h/a\:b"#, ["http://h/a:b"]), ("http:a", ["http", "a"]), ("a:http:/b", ["a", "http", "/b"]),
      ("file:///a%20b:c", ["/a b", "c"]), ("http://h?x:b", ["http://h?x", "b"]),
      ("HTTP://h/a.zip@/Place:b", ["HTTP://h/a.zip@/Place", "b"]),
    ])
  func colons(list: String, expected: [String]) throws {
    var options = MountOptions()
    try options.read(Array("substitution=\(list)".utf8))
    #expect(options.substitutions.map(\.shown) == expected)
  }

  @Test("what begins as a URL and is none is refused", arguments: ["http://", "https:///a", "http://h/a b"])
  func refused(layer: String) throws {
    var options = MountOptions()
    let failure = try #require(throws: Failure.self) {
      try options.read(Array("substitution=\(layer)".utf8))
    }
    #expect(failure.status == 2 && failure.message.contains("not a URL"))
  }

  @Test("the options of the cache take a folder, bytes and seconds")
  func cache() throws {
    var options = MountOptions()
    try options.read(Array("http_cache=/c,http_cache_size=2M,http_refresh=1.5".utf8))
    #expect(options.httpCache.map(\.shown) == "/c" && options.httpCacheSize == 2 << 20)
    #expect(options.httpRefresh == 1500)
  }
}
