import Posix
import TestSupport
import Testing

@testable import Layers

/// Archives and names of one repeated token, at which a careless parser takes quadratic time.
@Suite struct ArchiveWorstCaseTests {
  /// Opens the bytes as an archive.
  private static func open(_ bytes: [UInt8], _ folder: [[UInt8]] = []) throws -> ArchiveLayer? {
    let directory = try TemporaryFolder()
    let path = directory / "archive.zip"
    try path.write(bytes)
    return try? ArchiveLayer(archivePath: path.bytes, folder: folder, index: 0, cache: ContentCache())
  }

  @Test(
    "zip signatures",
    arguments: ["PK\u{1}\u{2}", "PK\u{3}\u{4}", "PK\u{5}\u{6}", "PK\u{6}\u{6}", "PK\u{6}\u{7}", "PK", "\0"])
  func signatures(token: String) throws {
    let end = Array("PK\u{5}\u{6}".utf8) + [UInt8](repeating: 0, count: 18)
    try LinearTime.check(repeating: token) { bytes in
      _ = try Self.open(bytes)
      _ = try Self.open(bytes + end)
      // The whole file as the central directory.
      let size = ZipBuilder.number(bytes.count, 4)
      _ = try Self.open(bytes + end.prefix(12) + size + ZipBuilder.number(0, 4) + [0, 0])
    }
  }

  private static func entries(_ size: Int, _ name: (Int) -> [UInt8]) -> [UInt8] {
    // A record of the central directory: 46 bytes and the name.
    var (table, count) = ([UInt8](), 0)
    while table.count < size {
      let name = name(count)
      table += [0x50, 0x4B, 1, 2, 0x14, 3, 20, 0] + [UInt8](repeating: 0, count: 20)
      table += ZipBuilder.number(name.count, 2) + [UInt8](repeating: 0, count: 10)
      table += ZipBuilder.number(0o100644 << 16, 4) + ZipBuilder.number(0, 4) + name
      count += 1
    }
    let number = ZipBuilder.number
    return table + number(0x0605_4B50, 4) + number(0, 4) + number(0xFFFF, 2) + number(0xFFFF, 2)
      + number(table.count, 4)
      + number(0, 4) + number(0, 2)
  }

  @Test("names of entries: repeated, deep, colliding, malformed")
  func names() throws {
    let deep = [UInt8]("a/".utf8)
    let names: [(String, (Int) -> [UInt8])] = [
      ("one", { _ in [0x61] }), ("none", { _ in [] }),
      ("slashes", { _ in Array(repeating: 0x2F, count: 4000) }),
      ("dots", { _ in Array("a".utf8) + Array(repeating: [0x2F, 0x2E], count: 1000).joined() }),
      ("deep", { _ in Array(repeatElement(deep, count: 2000).joined()) }),
      (
        "deep, all different",
        { Array("\($0)".utf8) + Array(repeatElement([0x2F, 0x61], count: 1000).joined()) }
      ),
      ("a folder in a file", { Array(($0 % 2 == 0 ? "a/b" : "a").utf8) }),
      ("whiteouts", { Array(".wh.\($0)".utf8) }),
      (".wh.", { _ in Array(repeatElement(Array(".wh.".utf8), count: 60).joined()) }),
      ("long", { _ in Array(repeating: 0x61, count: 65000) }),
      ("code page 437", { _ in Array(repeating: 0xFF, count: 65000) }),
    ]
    for (title, name) in names {
      try LinearTime.check(name: title, largest: 2 << 20) {
        Self.entries($0, name)
      } parse: {
        _ = try Self.open($0)
        _ = try Self.open($0, [[0x61], [0x61]])
      }
    }
  }

  @Test("extra fields")
  func extraFields() throws {
    for field: [UInt8] in [
      [0, 0, 0, 0], [1, 0, 0, 0], [0x75, 0x70, 0, 0], [0x55, 0x54, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF],
    ] {
      try LinearTime.check(name: "\(field)", largest: 2 << 20) { size in
        var entries: [ZipBuilder.Entry] = []
        for index in 0...size / 65_000 {
          var entry = ZipBuilder.Entry(ByteString("file \(index)"), "")
          entry.extra = Array(repeatElement(field, count: 16_000).joined())
          entries.append(entry)
        }
        return ZipBuilder(entries).bytes
      } parse: {
        _ = try Self.open($0)
      }
    }
  }

  @Test("comparison texts")
  func comparison() throws {
    for token in ["\0", "0\0", "f= \0", "-=0 a\0", ",", "-=0,", " ", "/"] {
      try LinearTime.check(repeating: token, after: "1\0") { _ = ComparisonText($0) }
    }
  }
}
