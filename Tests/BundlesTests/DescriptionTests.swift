import Posix
import TestSupport
import Testing

@testable import Bundles

/// What is told of a resource.
@Suite struct DescriptionTests {
  @Test(
    "it is told of the file as it is when it is opened",
    arguments: [(1_000_001, "utf-8"), (65_535, "utf-8"), (65_534, nil), (4, nil), (0, "utf-8")]
      as [(Int, String?)])
  func changing(size: Int, encoding: String?) throws {
    let fixture = try Fixture(["0 a.txt"], layers: 1)
    let path = try fixture.path(0) / "a.txt"
    try path.write([UInt8](repeating: 0x78, count: 3))
    let lookup = ResourceLookup(stack: fixture.stack, options: ResourceOptions(languages: []))
    let found = try #require(try lookup.find(names("a.txt", "/")))
    // Even sizes, and the first look at a large file, end inside a character: no text if the file ends there.
    try path.write(Array(("x" + String(repeating: "é", count: size / 2 + 1)).utf8.prefix(size)))
    let told = try found.description(by: MIMETypes())
    #expect(told.mimeType == "text/plain" && told.length == UInt64(size))
    #expect(told.textEncodingName == encoding)
  }
}
