import Foundation
import Posix
import TestSupport
import Testing

@testable import Layers

/// Entries that libarchive decodes.
@Suite struct ArchiveMethodTests {
  private static let long = text(lines: 40_000)
  private static let short = text(lines: 100)

  private static func text(lines: Int) -> [UInt8] {
    (0..<lines).flatMap { Array("line \($0 % 50) of the text\n".utf8) }
  }

  private func bytes(_ archive: String) throws -> [UInt8] {
    Array(try #require(Data(base64Encoded: archive, options: .ignoreUnknownCharacters)))
  }

  @Test(
    "LZMA, XZ and Zstandard are decoded, from any offset",
    arguments: [ForeignArchive.lzma, ForeignArchive.xz, ForeignArchive.zstandard], [0, 1])
  func large(archive: String, threads: Int) throws {
    try expectLong(in: ArchiveFixture(archive: try bytes(archive), threads: threads))
  }

  /// Reads a part of `long`, then all of it.
  private func expectLong(in fixture: ArchiveFixture) throws {
    #expect(fixture.layer.statistics.unreadable.isEmpty)
    let file = try fixture.open("long")
    var part = [UInt8](repeating: 0, count: 1000)
    let count = try part.withUnsafeMutableBytes { buffer throws(Errno) in
      try file.read(into: buffer, at: 500_000)
    }
    #expect(part[..<count] == Self.long[500_000..<501_000])
    #expect(try fixture.content("long") == Self.long)
  }

  /// Four times 60,000 bytes that begin with 200 arbitrary ones, then text, then one byte 300,000 times.
  private static let repetitive: [UInt8] = {
    var number = 1
    let arbitrary = (0..<200).map { _ in
      number = (number * 1_103_515_245 + 12345) & 0x7FFF_FFFF
      return UInt8(truncatingIfNeeded: number >> 16)
    }
    let block = arbitrary + [UInt8](repeating: 0, count: 59_800)
    return block * 4 + short + [UInt8](repeating: 7, count: 300_000)
  }()

  @Test("Deflate64 is decoded, with distant and long matches", arguments: [0, 1])
  func deflate64(threads: Int) throws {
    let fixture = try ArchiveFixture(archive: try bytes(ForeignArchive.deflate64), threads: threads)
    #expect(fixture.layer.statistics.unreadable.isEmpty)
    let file = try fixture.open("far")
    #expect(try file.readAll() == Self.repetitive)
    try fixture.evictAll()
    // Small reads, between which matches continue.
    var part = [UInt8](repeating: 0, count: 37)
    for offset in stride(from: 0, to: 300_000, by: 59_999) {
      let count = try part.withUnsafeMutableBytes { buffer throws(Errno) in
        try file.read(into: buffer, at: Int64(offset))
      }
      #expect(part[..<count] == Self.repetitive[offset..<offset + 37])
    }
  }

  @Test("any damage of a Deflate64 stream is an error or has no effect")
  func damagedDeflate64() throws {
    try expectDamageFound(
      in: bytes(ForeignArchive.deflate64), of: "far", Self.repetitive, from: 33,
      by: TestLength.of(full: 41, brief: 401))
  }

  /// Changes one bit of the only entry's stream at a time.
  /// - Parameter first: the offset of the first byte to change.
  private func expectDamageFound(
    in archive: [UInt8], of name: String, _ content: [UInt8], from first: Int, by step: Int
  ) throws {
    let directory = try #require(archive.indices.first { archive[$0...].starts(with: [0x50, 0x4B, 1, 2]) })
    for index in stride(from: first, to: directory, by: step) {
      var damaged = archive
      damaged[index] ^= UInt8(1 << (index % 8))
      let fixture = try ArchiveFixture(archive: damaged)
      do {
        // Some bits at the end of a block have no meaning.
        let isRight = try fixture.content(name) == content
        #expect(isRight, "byte \(index)")
      } catch { #expect(error as? Errno == .ioError) }
    }
  }

  /// An archive of `long`, made by Python.
  private func bzip2() throws -> [UInt8] {
    let script = """
      import sys, zipfile
      with zipfile.ZipFile(sys.stdout.buffer, "w", zipfile.ZIP_BZIP2) as archive:
          archive.writestr("long", "".join(f"line {n % 50} of the text\\n" for n in range(40_000)))
      """
    let outcome = try Command("/usr/bin/python3", "-c", script).run(timeout: 60)
    #expect(outcome.status == 0, "\(outcome.errorText)")
    return outcome.output
  }

  @Test("bzip2 is decoded, from any offset")
  func bzip2Offsets() throws { try expectLong(in: ArchiveFixture(archive: try bzip2())) }

  @Test("any damage of a bzip2 stream is an error or has no effect")
  func damagedBzip2() throws {
    try expectDamageFound(in: bzip2(), of: "long", Self.long, from: 34, by: 97)
  }

  @Test("the former number of Zstandard is known, too")
  func formerZstandard() throws {
    var archive = try bytes(ForeignArchive.zstandard)
    let directory = try #require(archive.indices.first { archive[$0...].starts(with: [0x50, 0x4B, 1, 2]) })
    #expect(archive[8] == 93 && archive[directory + 10] == 93)
    archive[8] = 20
    archive[directory + 10] = 20
    let fixture = try ArchiveFixture(archive: archive)
    #expect(fixture.layer.statistics.unreadable.isEmpty)
    #expect(try fixture.content("long") == Self.long)
  }

  @Test("PPMd is decoded")
  func ppmd() throws {
    #expect(try ArchiveFixture(archive: try bytes(ForeignArchive.ppmd)).content("short") == Self.short)
  }

  @Test(
    "encrypted entries are decoded with their password only",
    arguments: [
      ForeignArchive.aes256, ForeignArchive.zipCrypto, ForeignArchive.zipCryptoStreamed,
      ForeignArchive.aes128Stored,
    ])
  func encrypted(archive: String) throws {
    let archive = try bytes(archive)
    func fixture(_ passwords: [String]) throws -> (ArchiveFixture, String) {
      let fixture = try ArchiveFixture(archive: archive, passwords: passwords.map { Array($0.utf8) })
      return (fixture, try #require(fixture.paths().first))
    }
    for passwords in [[], ["wrong"]] {
      let (fixture, name) = try fixture(passwords)
      #expect(throws: Errno.permissionDenied) { try fixture.content(name) }
      #expect(fixture.layer.statistics.unreadable.map(\.reason) == (passwords.isEmpty ? ["encrypted"] : []))
    }
    let (fixture, name) = try fixture(["wrong", "secret"])
    #expect(try fixture.content(name) == (name == "short" ? Self.short : Array("tiny text\n".utf8) * 3))
  }

  @Test("damage is found in each method, however the entry is encrypted")
  func damaged() throws {
    let archives = [
      ForeignArchive.lzma, ForeignArchive.xz, ForeignArchive.zstandard, ForeignArchive.ppmd,
      ForeignArchive.aes256, ForeignArchive.aes128Stored, ForeignArchive.zipCrypto,
    ]
    for archive in archives {
      var bytes = try bytes(archive)
      let directory = try #require(bytes.indices.first { bytes[$0...].starts(with: [0x50, 0x4B, 1, 2]) })
      bytes[directory - 6] ^= 0x10
      bytes[(directory + 34) / 2] ^= 0x10
      let fixture = try ArchiveFixture(archive: bytes, passwords: [Array("secret".utf8)])
      let name = try #require(fixture.paths().first)
      #expect(throws: Errno.ioError) { try fixture.content(name) }
    }
  }

  @Test("an encryption field that leaves no room in a header is an error")
  func oversizedEncryptionField() throws {
    let archive = try bytes(ForeignArchive.aes256)
    let extra = 30 + Int(archive[26]) + Int(archive[27]) << 8
    let end = extra + Int(archive[28]) + Int(archive[29]) << 8
    let field = try #require((extra..<end).first { archive[$0...].starts(with: [0x01, 0x99, 7, 0]) })
    let values = archive[field + 4..<field + 11]
    let oversized: [UInt8] = [0x01, 0x99, 0xFB, 0xFF] + values + [UInt8](repeating: 0, count: 0xFFFB - 7)
    var changed = archive[..<28] + [0xFF, 0xFF] + archive[30..<extra] + oversized + archive[end...]
    let record = try #require(changed.indices.last { changed[$0...].starts(with: [0x50, 0x4B, 5, 6]) })
    let directory = changed.count - archive.count + Int(changed[record + 16]) + Int(changed[record + 17]) << 8
    for byte in 0..<4 { changed[record + 16 + byte] = UInt8(directory >> (8 * byte) & 0xFF) }
    let fixture = try ArchiveFixture(archive: Array(changed), passwords: [Array("secret".utf8)])
    #expect(throws: Errno.ioError) { try fixture.content("short") }
  }

  @Test("an encrypted entry without a checksum is another file in another archive")
  func replaced() throws {
    let fixture = try ArchiveFixture(
      archive: try bytes(ForeignArchive.aes256), passwords: [Array("secret".utf8)])
    let identity = try fixture.attributes("short").identity
    try fixture.path.replace(try bytes(ForeignArchive.aes256))
    _ = fixture.layer.reload()
    #expect(try fixture.attributes("short").identity != identity)
    #expect(try fixture.content("short") == Self.short)
  }
}

private func * (bytes: [UInt8], count: Int) -> [UInt8] { (0..<count).flatMap { _ in bytes } }
