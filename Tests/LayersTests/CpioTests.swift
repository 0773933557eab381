import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// Cpio archives that no program packs in one go: initramfs images, and files that share an inode number by mistake.
@Suite struct CpioTests {
  /// An entry in the format "newc".
  struct Entry {
    var name: String
    var mode: UInt32 = 0o100644
    var inode = 0
    var links = 1
    var content: [UInt8] = []

    var bytes: [UInt8] {
      let name = Array(self.name.utf8) + [0]
      let fields = [inode, Int(mode), 0, 0, links, 0, content.count, 0, 0, 0, 0, name.count, 0]
      let header = fields.flatMap { field in
        let digits = String(field, radix: 16)
        return Array((String(repeating: "0", count: 8 - digits.count) + digits).utf8)
      }
      return Self.padded(Array("070701".utf8) + header + name) + Self.padded(content)
    }

    private static func padded(_ bytes: [UInt8]) -> [UInt8] {
      bytes + [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4)
    }
  }

  private func archive(_ entries: [Entry], zeros: Int = 0) -> [UInt8] {
    (entries + [Entry(name: "TRAILER!!!")]).flatMap(\.bytes) + [UInt8](repeating: 0, count: zeros)
  }

  private func file(_ name: String, _ text: String) -> Entry { Entry(name: name, content: Array(text.utf8)) }

  private func compressed(_ bytes: [UInt8], by program: String) throws -> [UInt8] {
    let folder = try TemporaryFolder()
    try (folder / "plain").write(bytes)
    return try Command([ByteString(program), "-c", folder / "plain"]).check().output
  }

  @Test("a link with the inode number of a file keeps its own target, and a file its content")
  func sharedInode() throws {
    let entries = [
      Entry(name: "file", inode: 7, links: 4, content: Array("content".utf8)),
      Entry(name: "link", mode: 0o120777, inode: 7, links: 4, content: Array("target".utf8)),
      Entry(name: "name", inode: 7, links: 4),
      Entry(name: "folder", mode: 0o040755, inode: 7, links: 4),
    ]
    let fixture = try ArchiveFixture(archive: archive(entries))
    #expect(try fixture.paths() == ["file", "folder/", "link", "name"])
    let link = try fixture.attributes("link")
    #expect(link.mode == S_IFLNK | 0o777 && link.size == 6)
    #expect(try fixture.text("link") == "target")
    #expect(try fixture.text("file") == "content" && fixture.text("name") == "content")
    #expect(try fixture.attributes("file").identity == fixture.attributes("name").identity)
  }

  @Test("a file with the inode number of a link does not become the link")
  func fileAfterLink() throws {
    let entries = [
      Entry(name: "link", mode: 0o120777, inode: 7, links: 3, content: Array("target".utf8)),
      Entry(name: "other", mode: 0o120777, inode: 7, links: 3, content: Array("elsewhere".utf8)),
      Entry(name: "file", inode: 7, links: 3, content: Array("content".utf8)),
    ]
    let fixture = try ArchiveFixture(archive: archive(entries))
    #expect(try fixture.text("link") == "target" && fixture.text("other") == "elsewhere")
    #expect(try fixture.text("file") == "content" && fixture.attributes("file").mode == S_IFREG | 0o644)
  }

  @Test(
    "parts that follow each other are read as the kernel reads them", arguments: ["", "gzip", "xz", "zstd"])
  func parts(program: String) throws {
    let large = [UInt8](repeating: 5, count: 300_000)
    let first = archive([file("a", "1"), Entry(name: "large", content: large)], zeros: 1000)
    let second = archive([file("a", "2"), file("b", "b")], zeros: 512)
    var last = archive([Entry(name: "also large", content: large), file("c", "c")])
    if !program.isEmpty { last = try compressed(second + last + second, by: program) }
    let fixture = try ArchiveFixture(archive: first + second + last)
    #expect(try fixture.paths() == ["a", "also large", "b", "c", "large"])
    for name in ["c", "b", "a"] { #expect(try fixture.text(name) == (name == "a" ? "2" : name)) }
    #expect(try fixture.content("large") == large && fixture.content("also large") == large)
    #expect(fixture.layer.statistics.format == "cpio")
  }

  @Test("compressed parts that follow each other are read", arguments: ["gzip", "xz", "zstd"])
  func compressedParts(program: String) throws {
    let parts = try ["a", "b", "c"].map { try compressed(archive([file($0, $0)], zeros: 600), by: program) }
    let fixture = try ArchiveFixture(archive: Array(parts.joined()))
    #expect(try fixture.paths() == ["a", "b", "c"])
    for name in ["c", "a", "b"] { #expect(try fixture.text(name) == name) }
  }

  @Test("what follows an archive without being one is not read", arguments: [0, 1, 2])
  func noPart(kind: Int) throws {
    let text = Array(String(repeating: "text ", count: 300).utf8)
    let appended = [text, try compressed(text, by: "gzip"), try compressed(text, by: "xz")][kind]
    let fixture = try ArchiveFixture(archive: archive([file("a", "1")], zeros: 512) + appended)
    #expect(try fixture.paths() == ["a"])
    #expect(try fixture.text("a") == "1")
  }

  @Test("a damaged part is an error", arguments: ["", "gzip"])
  func damagedPart(program: String) throws {
    var part = archive([Entry(name: "large", content: [UInt8](repeating: 5, count: 300_000))])
    if !program.isEmpty { part = try compressed(part, by: program) }
    let bytes = archive([file("a", "1")], zeros: 512) + part.dropLast(part.count / 2)
    #expect(throws: ArchiveError.self) { try ArchiveFixture(archive: bytes) }
  }

  @Test("the bodies of entries that are not shown do not count as headers")
  func skippedBodies() throws {
    let zeros = [UInt8](repeating: 0, count: 20 << 20)
    let entries = [Entry(name: "fifo", mode: 0o010644, content: zeros), file("after", "x")]
    let fixture = try ArchiveFixture(archive: try compressed(archive(entries), by: "gzip"))
    #expect(try fixture.paths() == ["after"] && fixture.text("after") == "x")
  }

  @Test("encrypted archives are called by their kind")
  func encrypted() {
    #expect(ContainerFormat.encrypted(.lha).message.hasPrefix("encrypted lzh archives cannot be read"))
    #expect(ContainerFormat.encrypted(.rar5).message.hasPrefix("encrypted RAR archives cannot be read"))
    #expect(ContainerFormat.encrypted(.sevenZip).message.hasPrefix("encrypted 7z archives cannot be read"))
  }
}
