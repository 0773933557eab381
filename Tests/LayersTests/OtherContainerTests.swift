import Foundation
import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// Archives and images of other kinds than tar and 7z, without a mount.
@Suite struct OtherContainerTests {
  private static let formats = [
    "newc", "odc", "cpio.gz", "iso", "joliet.iso", "zisofs.iso", "xar", "tar.lz4", "tar.lz", "tar.lzma",
    "tar.Z",
    "bin.cpio", "ar", "cab", "rar", "rar5", "lzh",
  ]

  /// An archive by the script of the tests with mounts.
  private func archive(_ format: String) throws -> [UInt8] {
    let folder = try TemporaryFolder()
    let script = ByteString(#filePath).parent.parent / "MountTests/Archives/foreign_archives.py"
    try Command(["python3", script, "make", ByteString(format), folder / "archive"]).check()
    return try (folder / "archive").read()
  }

  @Test(
    "damage of any kind ends in an error, not in a crash or a hang", .timeLimit(.minutes(5)),
    arguments: formats)
  func damage(format: String) throws {
    let whole = try archive(format)
    var random = SplitMix64(seed: 1)
    for step in 0..<40 {
      var bytes = whole
      if step % 4 == 0 { bytes.removeLast(Int.random(in: 1...bytes.count, using: &random)) }
      for _ in 0..<Int.random(in: 1..<4, using: &random) where !bytes.isEmpty {
        let offset = Int.random(in: 0..<bytes.count, using: &random)
        // Tables of contents are at the beginning, those of images behind 32 KiB.
        let start = [0, 0, 32_768, 34_816][Int.random(in: 0..<4, using: &random)]
        bytes[step % 2 == 0 ? offset : min(start + offset % 512, bytes.count - 1)] = UInt8(
          random.next() & 0xFF)
      }
      try read(bytes, "\(format), step \(step)")
    }
  }

  /// Reads all files of an archive that may be damaged.
  private func read(_ bytes: [UInt8], _ comment: String) throws {
    guard let fixture = try? ArchiveFixture(archive: bytes, budget: 1 << 20) else { return }
    // A name that is not UTF-8 any more cannot be asked for by its text.
    for path in try fixture.paths() where !path.hasSuffix("/") && !path.contains("\u{FFFD}") {
      // Damage can make a file large beyond measure.
      guard try fixture.attributes(path).size <= 1 << 24 else { continue }
      do { _ = try fixture.content(path) } catch let error as Errno {
        #expect([.ioError, .staleFileHandle].contains(error), "\(comment), \(path): \(error)")
      }
    }
  }

  @Test("a cut archive is refused", arguments: ["newc", "iso", "ar", "cab", "rar", "tar.lz4", "tar.lz"])
  func cut(format: String) throws {
    let whole = try archive(format)
    #expect(throws: ArchiveError.self) { try ArchiveFixture(archive: Array(whole[..<(whole.count / 3)])) }
  }

  @Test(
    "what is in the file as it is, is read in place",
    arguments: ["newc", "bin.cpio", "iso", "joliet.iso", "ar"])
  func inPlace(format: String) throws {
    let fixture = try ArchiveFixture(archive: try archive(format))
    let tree = fixture.layer.current.tree
    let files = (1..<UInt32(tree.count)).filter { tree[$0].kind == .regular && tree[$0].size > 0 }
    #expect(files.count >= 3 && files.allSatisfy { tree[$0].isStored })
  }

  @Test("files of an image that are compressed, and those beside them, are read alike")
  func zisofs() throws {
    let fixture = try ArchiveFixture(archive: try archive("zisofs.iso"))
    #expect(try fixture.content("d/e/zeros") == [UInt8](repeating: 0, count: 70_000))
    #expect(try fixture.text("a") == "text\n")
    let tree = fixture.layer.current.tree
    #expect((1..<UInt32(tree.count)).contains { tree[$0].isSequential })
  }

  @Test("an archive stored in an image is a layer, and an image in a zip archive is an entry")
  func nested() throws {
    let folder = try TemporaryFolder()
    try (folder / "in.zip").write(ZipBuilder([.init("inside", "x")]).bytes)
    try Command(["bsdtar", "-C", folder.path, "--format=iso9660", "-cf", folder / "a.iso", "in.zip"]).check()
    let path = try #require(ArchivePath((folder / "a.iso!/in.zip!").bytes))
    let layer = try path.open(index: 0, nil, ContentCache()) { _, _ in }
    #expect(layer.statistics.format == "zip" && layer.statistics.files == 1)

    let image = try (folder / "a.iso").read()
    // The image's descriptors come to lie where those of an image would be.
    let zip = ZipBuilder([.init("b", [UInt8](repeating: 1, count: 4096)), .init("a.iso", image)]).bytes
    #expect(try ArchiveFixture(archive: zip).paths() == ["a.iso", "b"])
  }
}
