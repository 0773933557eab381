import Layers
import TestSupport
import Testing

@testable import bundlefs

@Suite struct ArchivePathTests {
  @Test("a name that ends with ! is an archive in the archive, unless there is a folder of this name")
  func inner() throws {
    let folder = try TemporaryFolder()
    let inner = ZipBuilder([.init("d/file", "1")]).bytes
    let path = folder / "out.zip"
    try path.write(ZipBuilder([.init("in.zip", inner), .init("odd!/file", "2")]).bytes)
    for end in ["!/in.zip!/d", "!/in.zip!", "!/odd!", ""] {
      let given = path + ByteString(end)
      let layer = try #require(ArchivePath(given.bytes)).open(
        index: 0, nil, ContentCache())
      #expect(ByteString(layer.path) == path + ByteString(end.hasSuffix("zip!") ? "!/in.zip" : end))
      #expect(layer.inner.count == (end.hasPrefix("!/in") ? 1 : 0))
    }
  }
}
