import Posix
import Testing

@testable import Bundles

@Suite struct ResourceURLTests {
  private static func bytes(_ texts: [String]) -> [[UInt8]] { texts.map { Array($0.utf8) } }

  @Test(
    "accepted URLs",
    arguments: [
      (nil, ["a"], "a"), ("", ["a"], "a"), ("localhost", ["a"], "a"), ("LocalHost", ["a"], "a"),
      (nil, ["", "a", "", "b", ""], "a b"), (nil, [".", "a", "."], "a"), (nil, ["..."], "..."),
      (nil, ["..a", "a.."], "..a a.."), (nil, ["a/b"], "a/b"), (nil, ["%2e%2e"], "%2e%2e"),
    ] as [(String?, [String], String)])
  func accepted(host: String?, segments: [String], expected: String) throws {
    let url = try ResourceURL(host: host.map { Array($0.utf8) }, segments: Self.bytes(segments))
    #expect(url.path.map { text([$0]) }.joined(separator: " ") == expected)
    #expect(url.localization == nil)
  }

  @Test(
    "rejected URLs",
    arguments: [
      ("example.org", ["a"]), ("localhost.", ["a"]), ("127.0.0.1", ["a"]), ("a", []), (nil, []), (nil, [""]),
      (nil, ["."]), (nil, [".."]), (nil, ["a", "..", "b"]), (nil, ["../etc"]), (nil, ["a/../b"]),
      (nil, ["a/.."]), (nil, ["/.."]), (nil, ["a\0"]), (nil, ["\0"]), ("\0", ["a"]),
    ] as [(String?, [String])])
  func rejected(host: String?, segments: [String]) {
    let error = #expect(throws: ResourceURLError.self) {
      try ResourceURL(host: host.map { Array($0.utf8) }, segments: Self.bytes(segments))
    }
    #expect(error?.errno == .invalidArgument && error?.description.isEmpty == false)
  }

  @Test("the localization of the query")
  func localization() throws {
    let path = Self.bytes(["a"])
    #expect(
      try ResourceURL(host: nil, segments: path, localization: Array("fr".utf8)).localization
        == Array("fr".utf8))
    for name in ["", "a/b", "../x", "a\0"] {
      #expect(throws: ResourceURLError.self) {
        try ResourceURL(host: nil, segments: path, localization: Array(name.utf8))
      }
    }
  }
}
