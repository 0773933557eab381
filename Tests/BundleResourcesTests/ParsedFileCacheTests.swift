import Bundles
import Foundation
import Posix
import TestSupport
import Testing

@testable import BundleResources

/// What invalidateCaches clears.
@Suite struct ParsedFileCacheTests {
  /// How often a file is parsed for two calls, and for one more after the cache was cleared.
  private func counts(_ layer: ByteString) throws -> [Int] {
    let layers = try LayerReader(paths: [layer.bytes], options: ResourceOptions(languages: []))
    let cache = ParsedFileCache<Int>()
    var count = 0
    func value() throws {
      let file = try #require(
        try layers.lookup.tables(.init(tables: [Array("T.strings".utf8)], catalogs: [])) { _ in nil }.first)
      let value = cache.value(of: file, at: layers.path(of: file.path, layer: file.layer)) { _ in
        count += 1
        return count
      }
      #expect(value == count)
    }
    try value()
    try value()
    let former = count
    cache.removeAll()
    try value()
    return [former, count]
  }

  @Test("a file is parsed once, and again after the cache was cleared; one that was just changed each time")
  func caching() throws {
    let folder = try TemporaryFolder()
    // The times of an entry are those in the archive.
    try (folder / "layer.zip").write(ZipBuilder([.init("T.strings", "a = b;")]).bytes)
    #expect(try counts(folder / "layer.zip") == [1, 2])
    let layer = try folder.folder("layer")
    try (layer / "T.strings").write("a = b;")
    #expect(try counts(layer) == [2, 3])
  }
}
