import CZlib
import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// Reads at any offset of a large deflated entry, and what they decode.
@Suite struct ArchiveSeekTests {
  private static let size = 24 << 20
  /// Words of eight bytes that tell their offset. A quarter of each page is arbitrary, so that there is something to
  /// decode.
  private static let content: [UInt8] = {
    var random = SplitMix64(seed: 3)
    let words = (0..<UInt64(size / 8)).map { $0 % 512 < 128 ? random.next() : $0 & ~0xFF }
    return words.withUnsafeBytes { Array($0) }
  }()
  private static let archive = ZipBuilder([entry(content)]).bytes

  /// An entry that zlib packs, with matches across the places at which decoding is resumed.
  private static func entry(_ content: [UInt8]) -> ZipBuilder.Entry {
    var stream = z_stream()
    let size = CInt(MemoryLayout<z_stream>.size)
    deflateInit2_(&stream, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, size)
    defer { deflateEnd(&stream) }
    var (input, packed) = (content, [UInt8](repeating: 0, count: content.count))
    input.withUnsafeMutableBufferPointer { input in
      packed.withUnsafeMutableBufferPointer { packed in
        (stream.next_in, stream.avail_in) = (input.baseAddress, UInt32(input.count))
        (stream.next_out, stream.avail_out) = (packed.baseAddress, UInt32(packed.count))
        precondition(deflate(&stream, Z_FINISH) == Z_STREAM_END)
      }
    }
    var entry = ZipBuilder.Entry("big", content, .deflated)
    entry.packed = Array(packed[..<Int(stream.total_out)])
    return entry
  }

  /// Fast also where it is not optimised.
  private static func isContent(_ bytes: [UInt8], _ count: Int, at offset: Int) -> Bool {
    content.withUnsafeBytes { all in
      bytes.withUnsafeBytes { part in
        guard let left = part.baseAddress, let right = all.baseAddress else { return false }
        return memcmp(left, right + offset, count) == 0
      }
    }
  }

  private func expectPart(of file: LayerFile, at offset: Int, count: Int = 4096) throws {
    var bytes = [UInt8](repeating: 0, count: count)
    let read = try bytes.withUnsafeMutableBytes { buffer throws(Errno) in
      try file.read(into: buffer, at: Int64(offset))
    }
    #expect(read == min(count, Self.size - offset))
    #expect(Self.isContent(bytes, read, at: offset), "at \(offset)")
  }

  /// How many bytes were decoded, once no thread decodes ahead of a reader any more.
  private func decodedCount(of file: LayerFile, in fixture: ArchiveFixture) -> UInt64 {
    let isIdle = eventually(within: 120) { !file.isBeingDecoded }
    #expect(isIdle, "a thread still decodes")
    return fixture.cache.pool.decoded.count
  }

  @Test(
    "after the first pass a seek decodes a few MiB, evicted or not", arguments: [0, 2], [8 << 20, 256 << 20])
  func seek(threads: Int, budget: Int) throws {
    let fixture = try ArchiveFixture(archive: Self.archive, budget: budget, threads: threads)
    let file = try fixture.open("big")
    #expect(try file.readAll() == Self.content)
    var random = SplitMix64(seed: UInt64(budget))
    for round in 0..<20 {
      let before = decodedCount(of: file, in: fixture)
      if round % 5 == 0 { fixture.cache.evictAll() }
      let offset = Int.random(in: 0..<Self.size, using: &random)
      try expectPart(of: file, at: offset)
      let decoded = decodedCount(of: file, in: fixture) - before
      // Up to the range, and ahead of it.
      #expect(decoded <= 7 << 20, "at \(offset)")
      #expect(fixture.cache.statistics.bytes <= budget + 2 * ArchiveContent.chunkSize)
    }
  }

  @Test("what is decoded at several places stays readable, within the budget", arguments: [0, 2])
  func places(threads: Int) throws {
    let fixture = try ArchiveFixture(archive: Self.archive, threads: threads)
    let file = try fixture.open("big")
    #expect(try file.readAll() == Self.content)
    fixture.cache.evictAll()
    // Before the first copy of the decoder, all would be decoded anew.
    let offsets = stride(from: 3 << 20, to: Self.size, by: 5 << 20).reversed()
    for offset in offsets { try expectPart(of: file, at: offset) }
    let before = decodedCount(of: file, in: fixture)
    for offset in offsets { try expectPart(of: file, at: offset) }
    #expect(decodedCount(of: file, in: fixture) == before)
    #expect(try file.readAll() == Self.content)
  }

  @Test("the index goes when the memory is needed, and the entry is read from its beginning again")
  func evictedIndex() throws {
    let fixture = try ArchiveFixture(archive: Self.archive)
    let file = try fixture.open("big")
    #expect(try file.readAll() == Self.content)
    try fixture.evictAll()
    let before = fixture.cache.pool.decoded.count
    try expectPart(of: file, at: Self.size - 4096)
    #expect(fixture.cache.pool.decoded.count - before == Self.size)
  }

  @Test("the end of a damaged entry is an error however it is reached", arguments: [0, 2])
  func damaged(threads: Int) throws {
    var entry = Self.entry(Self.content)
    entry.hasWrongChecksum = true
    let fixture = try ArchiveFixture([entry], budget: 8 << 20, threads: threads)
    let file = try fixture.open("big")
    for offset in [10 << 20, 1 << 20, 20 << 20, 5 << 20] { try expectPart(of: file, at: offset) }
    for _ in 0..<3 {
      #expect(throws: Errno.ioError) { try expectPart(of: file, at: Self.size - 4096) }
    }
  }

  @Test("what is resumed continues with nothing of what overwrites the archive", arguments: [0, 2])
  func overwritten(threads: Int) throws {
    var other = Self.content
    for offset in stride(from: 0, to: other.count, by: 1000) { other[offset] ^= 1 }
    let present = ZipBuilder([Self.entry(other)]).bytes
    for isVerified in [true, false] {
      let fixture = try ArchiveFixture(archive: Self.archive, threads: threads)
      let file = try fixture.open("big")
      if isVerified { #expect(try file.readAll() == Self.content) }
      try expectPart(of: file, at: 12 << 20)
      let isIdle = eventually(within: 60) {
        fixture.cache.evictAll()
        return fixture.cache.statistics.bytes < 1 << 20
      }
      #expect(isIdle)
      try fixture.path.withOpen(O_WRONLY) { file in
        _ = present.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
      }
      #expect(throws: Errno.self) { try expectPart(of: file, at: 9 << 20) }
      _ = fixture.layer.reload()
      #expect(try fixture.content("big") == other)
    }
  }

  @Test("random reads by several threads return the content, while it is evicted", arguments: [0, 2])
  func concurrent(threads: Int) throws {
    let fixture = try ArchiveFixture(archive: Self.archive, budget: 12 << 20, threads: threads)
    let file = try fixture.open("big")
    let (cache, failures) = (fixture.cache, Locked<[Int]>([]))
    let readers = try (0..<4).map { seed in
      ThreadHandle(
        try Thread(name: "reader") {
          var random = SplitMix64(seed: UInt64(seed))
          var bytes = [UInt8](repeating: 0, count: 1 << 20)
          for _ in 0..<40 {
            let offset = Int.random(in: 0..<Self.size, using: &random)
            let count = Int.random(in: 1...bytes.count, using: &random)
            let read = bytes.withUnsafeMutableBytes { all in
              try? file.read(into: UnsafeMutableRawBufferPointer(rebasing: all[..<count]), at: Int64(offset))
            }
            if read != min(count, Self.size - offset) || !Self.isContent(bytes, read ?? 0, at: offset) {
              failures.withLock { $0.append(offset) }
            }
            if seed == 0, Bool.random(using: &random) { cache.evictAll() }
          }
        })
    }
    for reader in readers { reader.join() }
    #expect(failures.withLock { $0 } == [])
  }

  @Test("copies of decoders go on where they were made, whichever library decodes")
  func copies() throws {
    let fixture = try ArchiveFixture(archive: Self.archive)
    let source = try ArchiveSource(path: fixture.path.bytes)
    let index = try ArchiveIndex.read(source, folder: [], encoding: nil)
    let number = try #require("big".withCString { index.find($0, in: ArchiveTree.root) })
    let (node, header) = (index.tree[number], index.header(of: index.tree[number]))
    let entry = CompressedEntry(
      source: source, header: header.offset, start: try header.contentStart(of: node), node: node,
      container: nil)
    let decoders: [EntryDecoder?] = [try InflateDecoder(entry), try IsalDecoder.make(entry)]
    var random = SplitMix64(seed: 12)
    for decoder in decoders.compactMap(\.self) {
      let position = try Self.check(decoder, pieces: 30, using: &random)
      let copy = try #require(decoder.copy())
      #expect(copy.position == position)
      try Self.check(decoder, pieces: 20, using: &random)
      let second = try #require(copy.copy())
      for each in [copy, second, decoder] { try Self.check(each, pieces: .max, using: &random) }
    }
  }

  /// Decodes so many pieces of random sizes, or up to the end, where the decoder verifies the checksum.
  @discardableResult
  private static func check(
    _ decoder: EntryDecoder, pieces: Int, using random: inout SplitMix64
  ) throws -> UInt64 {
    var (buffer, left) = ([UInt8](repeating: 0, count: 500_000), pieces)
    while left > 0 {
      left -= 1
      let (start, room) = (Int(decoder.position), Int.random(in: 1...buffer.count, using: &random))
      let count = try buffer.withUnsafeMutableBytes { all throws(Errno) in
        try decoder.read(into: UnsafeMutableRawBufferPointer(rebasing: all[..<room]))
      }
      #expect(isContent(buffer, count, at: start))
      if count == 0 { break }
    }
    return decoder.position
  }

  @Test("ranges of decoded bytes agree with a model of single bytes")
  func ranges() {
    var random = SplitMix64(seed: 9)
    for _ in 0..<200 {
      var (ranges, model) = (DecodedRanges(), Set<UInt64>())
      for _ in 0..<30 {
        switch Int.random(in: 0..<5, using: &random) {
        case 0: ranges.begin(at: .random(in: 0..<90, using: &random))
        case 1:
          let discarded = ranges.removeEarlier(toKeep: .random(in: 0..<90, using: &random))
          for range in discarded { model.subtract(range) }
        case 2:
          let lower = min(ranges.end, ranges.last.lowerBound + 3)
          model.subtract(ranges.last.lowerBound..<lower)
          ranges.removeBeginning(upTo: lower)
        default:
          let next = ranges.end..<ranges.end + .random(in: 1..<9, using: &random)
          ranges.removeEarlier(in: next)
          ranges.extend(to: next.upperBound)
          model.formUnion(next)
        }
        #expect(ranges.count == UInt64(model.count))
        for byte in 0..<UInt64(100) { #expect(ranges.contains(byte..<byte + 1) == model.contains(byte)) }
      }
    }
  }
}
