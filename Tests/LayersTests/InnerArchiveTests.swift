import Posix
import TestSupport
import Testing

@testable import Layers

/// Archives that are stored in archives.
@Suite struct InnerArchiveTests {
  private static func outer(_ text: String, _ method: ZipBuilder.Method = .stored) -> [UInt8] {
    let inmost = ZipBuilder([.init("d/file", text, .deflated), .init("top", "1")]).bytes
    let inner = ZipBuilder([.init("lib/inmost.zip", inmost)]).bytes
    return ZipBuilder([.init("before", "x"), .init("inner.zip", inner, method), .init("after", "y")]).bytes
  }

  private func layer(
    _ path: ByteString, _ inner: [[String]], folder: [String] = []
  ) throws(ArchiveError) -> ArchiveLayer {
    try ArchiveLayer(
      archivePath: path.bytes, inner: inner.map { $0.map { Array($0.utf8) } },
      folder: folder.map { Array($0.utf8) }, index: 0, cache: ContentCache())
  }

  private func read(_ layer: ArchiveLayer, _ name: String) throws -> String {
    let folder = try Layer.archive(layer).directory(at: []).top
    let file = try withCName(Array(name.utf8)) { name throws(Errno) -> LayerFile? in
      guard case .file(let attributes) = try folder.find(name) else { return nil }
      return try folder.openFile(name, identity: attributes.identity)
    }
    return String(decoding: try #require(file).readAll(), as: UTF8.self)
  }

  @Test("an archive in an archive in an archive is a layer, and follows the outermost file")
  func nested() throws {
    let folder = try TemporaryFolder()
    let path = folder / "outer.zip"
    try path.write(Self.outer("first"))
    let found = try layer(path, [["inner.zip"], ["lib", "inmost.zip"]], folder: ["d"])
    #expect(try read(found, "file") == "first")
    #expect(ByteString(found.path) == path + "!/inner.zip!/lib/inmost.zip!/d")
    try path.replace(Self.outer("another"))
    #expect(found.reload() != nil)
    #expect(try read(found, "file") == "another")
  }

  @Test("what is missing, a folder, compressed or no archive is refused by name")
  func refused() throws {
    let folder = try TemporaryFolder()
    let path = folder / "outer.zip"
    try path.write(Self.outer("text", .deflated))
    let name = Array("inner.zip".utf8)
    #expect(throws: ArchiveError.packedInnerArchive(name)) { try layer(path, [["inner.zip"]]) }
    #expect(throws: ArchiveError.noInnerArchive(Array("no.zip".utf8))) { try layer(path, [["no.zip"]]) }
    #expect(throws: ArchiveError.noInnerArchive(Array("no/in.zip".utf8))) {
      try layer(path, [["no", "in.zip"]])
    }
    #expect(throws: ArchiveError.noArchive) { try layer(path, [["before"]]) }
  }
}
