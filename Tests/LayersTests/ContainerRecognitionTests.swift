import Foundation
import Posix
import TestSupport
import Testing

@testable import Layers

/// What is an archive, and what the others are.
@Suite struct ContainerRecognitionTests {
  /// Of a file `f` with the text `text`.
  private static let sevenZip = decoded(SevenZipBytes.copied)

  private static func decoded(_ text: String) -> [UInt8] {
    Array(Data(base64Encoded: text, options: .ignoreUnknownCharacters) ?? Data())
  }

  private func program(_ magic: String, _ count: Int) -> [UInt8] {
    Array(magic.utf8) + (0..<count).map { UInt8(truncatingIfNeeded: $0 * 7) }
  }

  @Test(
    "a 7z archive behind a program is read, also across the edge of a window",
    arguments: [("MZ", 100), ("\u{7F}ELF", 262_138), ("MZ", 1_000_000)])
  func selfExtractor(magic: String, count: Int) throws {
    // A signature without a header comes before the archive.
    let bytes = program(magic, count) + SevenZipHeader.signature + Self.sevenZip + Array("appended".utf8)
    let fixture = try ArchiveFixture(archive: bytes)
    #expect(try fixture.paths() == ["f"])
    #expect(try fixture.text("f") == "text")
    #expect(fixture.layer.statistics.format == "7z")
    try fixture.path.replace(bytes + [0])
    _ = fixture.layer.reload()
    #expect(fixture.layer.reloadError == nil)
    #expect(try fixture.text("f") == "text")
  }

  @Test("a zip archive behind a program is one, though it has a 7z archive, and the other way round")
  func either() throws {
    let stored = ZipBuilder([.init("in.7z", Self.sevenZip)]).bytes
    #expect(try ArchiveFixture(archive: program("MZ", 1000) + stored).paths() == ["in.7z"])
    let zip = ZipBuilder([.init("inside", "zip")]).bytes
    #expect(try ArchiveFixture(archive: program("MZ", 1000) + Self.sevenZip + zip).paths() == ["f"])
    #expect(throws: ArchiveError.noArchive) { try ArchiveFixture(archive: program("MZ", 100_000)) }
  }

  @Test("zeros are a tar archive of nothing, unless they can be part of a file that is being downloaded")
  func emptyTar() throws {
    for count in [1024, 10_240, 1 << 20] {
      let fixture = try ArchiveFixture(archive: [UInt8](repeating: 0, count: count))
      #expect(try fixture.paths() == [] && fixture.layer.statistics.format == "tar")
      #expect(fixture.layer.emptinessReason == nil)
    }
    for count in [512, 1025, 10_241, 1 << 20 + 512] {
      #expect(throws: ArchiveError.noArchive, "\(count)") {
        try ArchiveFixture(archive: [UInt8](repeating: 0, count: count))
      }
    }
    #expect(throws: ArchiveError.noArchive) {
      try ArchiveFixture(archive: [UInt8](repeating: 0, count: 10_239) + [1])
    }
    let folder = try TemporaryFolder()
    try Command.shell("tar -cf \"$1\" -T /dev/null", folder / "archive").check()
    #expect(try ArchiveFixture(archive: (folder / "archive").read()).paths() == [])
  }

  @Test("an archive that libarchive cannot unpack is not called damaged")
  func unsupportedMethods() throws {
    for (bytes, words) in [
      (SevenZipBytes.deflate64, "packed by Deflate64"), (SevenZipBytes.arm64, "packed by the filter ARM64"),
      (SevenZipBytes.manyFilters, "encoded with many filters"),
    ] {
      let message = message(of: Self.decoded(bytes), named: "a.7z")
      #expect(message.contains(words) && !message.contains("damaged"), "\(message)")
    }
  }

  @Test("a part of an archive that was split is called that")
  func parts() throws {
    let whole = Self.sevenZip
    let half = Array(whole[..<(whole.count / 2)])
    for (name, bytes) in [("a.7z.001", half), ("a.7z.002", Array(whole[half.count...])), ("a.z01", half)] {
      let message = message(of: bytes, named: ByteString(name))
      #expect(message.contains("one part of an archive that was split"), "\(name): \(message)")
    }
    let message = message(of: half, named: "a.7z")
    #expect(message.contains("a part may be missing"), "\(message)")
    #expect(self.message(of: whole, named: "a.7z.001").isEmpty)
  }

  @Test("archives of other kinds are named")
  func others() throws {
    var image = [UInt8](repeating: 0, count: 40_960)
    image.replaceSubrange(32_768..<32_774, with: [0] + Array("BEA01".utf8))
    for (bytes, words) in [
      (Array("hsqs more".utf8), "a SquashFS image"), (image, "a UDF image"),
      ([0xED, 0xAB, 0xEE, 0xDB, 3, 0], "an RPM package"), ([0x60, 0xEA, 1, 0], "an ARJ archive"),
    ] {
      let message = message(of: bytes, named: "file")
      #expect(message.contains(words) && message.contains("cannot be a layer"), "\(message)")
    }
  }

  @Test("an archive in several files, or whose table of contents is encrypted, is refused with that reason")
  func unreadable() throws {
    let rar = Array("Rar!\u{1A}\u{7}\u{0}".utf8)
    let rar5 = Array("Rar!\u{1A}\u{7}\u{1}\u{0}".utf8) + [1, 2, 3, 4]
    let cabinet = Array("MSCF".utf8) + [UInt8](repeating: 0, count: 26)
    for (bytes, words) in [
      (rar + [0, 0, 0x73, 1, 0, 13, 0], "one part of a RAR archive in several files"),
      (rar + [0, 0, 0x73, 0x80, 0, 13, 0], "encrypted RAR archives cannot be read"),
      (rar5 + [3, 1, 0, 1], "one part of a RAR archive in several files"),
      (rar5 + [0x84, 0, 1, 1, 7, 1], "one part of a RAR archive in several files"),
      (rar5 + [3, 4, 0, 0], "encrypted RAR archives cannot be read"),
      (cabinet + [2, 0], "one part of a cabinet in several files"),
    ] {
      let message = message(of: bytes, named: "file")
      #expect(message.contains(words), "\(message)")
    }
    for bytes in [rar, rar5, cabinet] {
      let message = message(of: bytes, named: "file")
      #expect(message.contains("a damaged archive"), "\(message)")
    }
  }

  @Test("what libarchive could only decompress by running a program is refused")
  func program() throws {
    let message = message(of: [0x89, 0x4C, 0x5A, 0x4F, 0, 0x0D, 0x0A, 0x1A, 0x0A, 0x10], named: "a.tar.lzo")
    #expect(
      message.contains("which this libarchive cannot read") || message.contains("damaged"), "\(message)")
  }

  /// Why a file cannot be a layer; nothing if it can.
  private func message(of bytes: [UInt8], named name: ByteString) -> String {
    do {
      let folder = try TemporaryFolder()
      try (folder / name).write(bytes)
      _ = try ArchiveLayer(archivePath: (folder / name).bytes, index: 0, cache: ContentCache())
      return ""
    } catch let error as ArchiveError { return error.message } catch { return "\(error)" }
  }
}
