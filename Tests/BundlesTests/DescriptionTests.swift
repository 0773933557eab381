import Posix
import TestSupport
import Testing

@testable import Bundles

/// The metadata of resources.
@Suite struct DescriptionTests {
  @Test(
    "the metadata is that of the opened file",
    arguments: [(1_000_001, "utf-8"), (65_535, "utf-8"), (65_534, nil), (4, nil), (0, "utf-8")]
      as [(Int, String?)])
  func changing(size: Int, encoding: String?) throws {
    let fixture = try LookupFixture(["0 a.txt"], layers: 1)
    let path = try fixture.path(0) / "a.txt"
    try path.write([UInt8](repeating: 0x78, count: 3))
    let lookup = ResourceLookup(stack: fixture.stack, options: ResourceOptions(languages: []))
    let found = try #require(try lookup.find(names("a.txt", "/")))
    // Even sizes, and the examined start of a large file, end inside a character. If the file ends there, it is not
    // UTF-8.
    try path.write(Array(("x" + String(repeating: "é", count: size / 2 + 1)).utf8.prefix(size)))
    let description = try found.description(by: MIMETypes())
    #expect(description.mimeType == "text/plain" && description.length == UInt64(size))
    #expect(description.textEncodingName == encoding)
  }
}
