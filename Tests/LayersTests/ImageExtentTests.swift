import Posix
import TestSupport
import Testing

@testable import Layers

/// Files of ISO 9660 images that consist of several extents.
@Suite struct ImageExtentTests {
  private static let block = 2048

  /// A number in both byte orders.
  private func both(_ number: Int) -> [UInt8] {
    let bytes = (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    return bytes + bytes.reversed()
  }

  private func record(_ name: [UInt8], at location: Int, size: Int, flags: UInt8) -> [UInt8] {
    var record: [UInt8] = [0, 0] + both(location) + both(size) + [100, 1, 1, 0, 0, 0, 0]
    record += [flags, 0, 0, 1, 0, 0, 1, UInt8(name.count)] + name
    if record.count % 2 == 1 { record.append(0) }
    record[0] = UInt8(record.count)
    return record
  }

  /// An image whose root, in block 20, has some records; blocks from 24 on are filled with their number.
  private func image(_ records: [[UInt8]]) -> [UInt8] {
    let root = record([0], at: 20, size: Self.block, flags: 2)
    var image = [UInt8](repeating: 0, count: 40 * Self.block)
    func put(_ bytes: [UInt8], at offset: Int) {
      image.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    }
    let descriptor = 16 * Self.block
    put([1] + Array("CD001".utf8) + [1], at: descriptor)
    put(both(40), at: descriptor + 80)
    put([1, 0, 0, 1], at: descriptor + 120)
    put([1, 0, 0, 1], at: descriptor + 124)
    put([0, 8, 8, 0], at: descriptor + 128)
    put(both(10), at: descriptor + 132)
    put([18, 0, 0, 0], at: descriptor + 140)
    put([0, 0, 0, 19], at: descriptor + 148)
    put(root, at: descriptor + 156)
    put([1], at: descriptor + 881)
    put([255] + Array("CD001".utf8) + [1], at: 17 * Self.block)
    put([1, 0, 20, 0, 0, 0, 1, 0, 0, 0], at: 18 * Self.block)
    put([1, 0, 0, 0, 0, 20, 0, 1, 0, 0], at: 19 * Self.block)
    put(root + record([1], at: 20, size: Self.block, flags: 2) + records.joined(), at: 20 * Self.block)
    for block in 24..<40 { put([UInt8](repeating: UInt8(block), count: Self.block), at: block * Self.block) }
    return image
  }

  /// Records of a file of several extents, given by the numbers of their blocks and their sizes.
  private func records(_ name: String, _ extents: [(block: Int, size: Int)]) -> [[UInt8]] {
    extents.enumerated().map { number, extent in
      let flags: UInt8 = number + 1 < extents.count ? 0x80 : 0
      return record(Array((name + ".;1").utf8), at: extent.block, size: extent.size, flags: flags)
    }
  }

  private func content(_ runs: [(block: Int, size: Int)]) -> [UInt8] {
    runs.flatMap { [UInt8](repeating: UInt8($0.block), count: $0.size) }
  }

  @Test("a file of several extents is read extent by extent, and others beside it in place")
  func extents() throws {
    let records = records("A", [(26, 2048), (28, 4096), (33, 100)]) + records("B", [(35, 3000)])
    let fixture = try ArchiveFixture(archive: image(records))
    let paths = try fixture.paths()
    #expect(paths.count == 2)
    let split = content([(26, 2048), (28, 2048), (29, 2048), (33, 100)])
    let contents = try paths.map { try fixture.content($0) }
    #expect(contents == [split, content([(35, 2048), (36, 952)])])
    let tree = fixture.layer.current.tree
    #expect((1..<UInt32(tree.count)).count { tree[$0].isStored } == 1)
  }

  @Test("files may lie between the extents of another one")
  func interleaved() throws {
    let records = records("A", [(24, 2048), (33, 2048)]) + records("B", [(31, 2048), (32, 5)])
    let fixture = try ArchiveFixture(archive: image(records))
    let paths = try fixture.paths()
    #expect(paths.count == 2)
    for (path, runs) in zip(paths, [[(24, 2048), (33, 2048)], [(31, 2048), (32, 5)]]) {
      #expect(try fixture.content(path) == content(runs), "\(path)")
    }
  }

  @Test("an image whose extents libarchive cannot reach is refused with that reason")
  func outOfOrder() {
    let image = image(records("A", [(30, 2048), (26, 2048)]) + records("B", [(31, 3000)]))
    let error = #expect(throws: ArchiveError.self) { try ArchiveFixture(archive: image) }
    #expect(error?.message.contains("not in the order") == true, "\(error?.message ?? "")")
  }
}
