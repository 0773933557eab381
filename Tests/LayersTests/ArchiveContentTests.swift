import CZlib
import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

private func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
  var random = SplitMix64(seed: seed)
  // Eight at a time, since tests are not optimised.
  let words = (0..<(count / 8 + 1)).map { _ in random.next() }
  return words.withUnsafeBytes { [UInt8]($0.prefix(count)) }
}

@Suite struct ArchiveContentTests {
  @Test("CRC-32 can be computed in parts", arguments: [0, 1, 7, 8, 9, 1000])
  func checksum(count: Int) {
    let content = bytes(count)
    let checksum = content.withUnsafeBytes { all in
      let first = UnsafeRawBufferPointer(rebasing: all[..<(count / 3)]).crc32()
      return UnsafeRawBufferPointer(rebasing: all[(count / 3)...]).crc32(after: first)
    }
    #expect(checksum == ZipBuilder.checksum(content))
  }

  @Test("CRC-32 is zlib's, of any length, at any alignment and after any other, also where ISA-L computes it")
  func fastChecksum() {
    let content = bytes(300_000, seed: 3)
    // Loads ISA-L, if it is installed; then it computes those of few bytes, too.
    _ = Isal.library(for: content.count)
    var random = SplitMix64(seed: 4)
    content.withUnsafeBytes { all in
      for round in 0..<2000 {
        let start = Int.random(in: 0..<200, using: &random)
        let count = Int.random(in: 0..<(round.isMultiple(of: 100) ? 299_000 : 2000), using: &random)
        let former = round.isMultiple(of: 5) ? 0 : UInt32.random(in: 0 ... .max, using: &random)
        let part = UnsafeRawBufferPointer(rebasing: all[start..<start + count])
        let expected = UInt32(crc32_z(UInt(former), part.baseAddress, count))
        #expect(part.crc32(after: former) == expected)
      }
    }
  }

  @Test(
    "small entries are read with fields of any length before them",
    arguments: [0, 28, 159, 160, 161, 5000])
  func localFields(length: Int) throws {
    let sizes = [1, 2000, 16_370, 16_380, 40_000]
    let entries = sizes.map { size in
      var entry = ZipBuilder.Entry(ByteString("file-\(size)"), bytes(size, seed: UInt64(size)), .deflated)
      entry.localExtra = [UInt8](repeating: 7, count: length)
      return entry
    }
    let fixture = try ArchiveFixture(entries)
    for (size, entry) in zip(sizes, entries) {
      let file = try fixture.open("file-\(size)")
      var buffer = [UInt8](repeating: 0, count: size + 1)
      let count = try buffer.withUnsafeMutableBytes { all in try file.read(into: all, at: 0) }
      #expect(Array(buffer[..<count]) == entry.content)
    }
  }

  @Test(
    "random reads return the content, with and without decoding threads", arguments: [0, 2],
    [ZipBuilder.Method.stored, .deflated])
  func randomReads(threads: Int, method: ZipBuilder.Method) throws {
    let content = bytes(1_500_000)
    let fixture = try ArchiveFixture([.init("big", content, method)], threads: threads)
    let file = try fixture.open("big")
    var random = SplitMix64(seed: 5)
    var buffer = [UInt8](repeating: 0, count: 200_000)
    for _ in 0..<30 {
      let offset = Int.random(in: 0..<content.count, using: &random)
      let length = Int.random(in: 1...buffer.count, using: &random)
      let count = try buffer.withUnsafeMutableBytes { all in
        try file.read(into: UnsafeMutableRawBufferPointer(rebasing: all[..<length]), at: Int64(offset))
      }
      #expect(count == min(length, content.count - offset))
      #expect(Array(buffer[..<count]) == Array(content[offset..<offset + count]))
    }
    #expect(try file.readAll() == content)
    let statistics = fixture.cache.statistics
    #expect((statistics.bytes > 0) == (method == .deflated), "stored entries are not cached")
  }

  @Test("damaged entries fail with EIO, encrypted ones with EACCES, unknown methods with EOPNOTSUPP")
  func errors() throws {
    func entry(_ name: ByteString, _ method: ZipBuilder.Method, _ change: (inout ZipBuilder.Entry) -> Void)
      -> ZipBuilder.Entry
    {
      var entry = ZipBuilder.Entry(name, bytes(5000), method)
      change(&entry)
      return entry
    }
    let fixture = try ArchiveFixture([
      .init("first", "fine"), entry("crc", .stored) { $0.hasWrongChecksum = true },
      entry("crc2", .deflated) { $0.hasWrongChecksum = true },
      entry("bomb", .deflated) { $0.sizeError = -100 }, entry("short", .deflated) { $0.sizeError = 100 },
      entry("cut", .deflated) { $0.compressedSizeError = -50 },
      entry("sizes", .stored) { $0.sizeError = 5 }, entry("secret", .stored) { $0.flags = 1 },
      entry("secret2", .deflated) { $0.flags = 1 }, entry("strange", .deflated) { $0.claimedMethod = 97 },
      entry("astray", .stored) { $0.offsetError = 3 },
      entry("full", .deflated) { $0.sizeError = -5000 },
      entry("full2", .stored) { $0.sizeError = -5000 }, .init("empty", "", .deflated),
      .init("empty2", ""), entry("absurd", .deflated) { $0.compressedSizeError = 1 << 30 },
      entry("endless", .deflated) {
        $0.sizeError = 0xFFFF_FFFF - $0.content.count
        $0.extra = ZipBuilder.number(1, 2) + ZipBuilder.number(8, 2) + ZipBuilder.number(Int.max, 8)
      },
      .init("last", "fine", .deflated),
    ])
    let expected: [String: Errno] = [
      "crc": .ioError, "crc2": .ioError, "bomb": .ioError, "short": .ioError, "cut": .ioError,
      "sizes": .ioError, "secret": .permissionDenied,
      "secret2": .permissionDenied, "strange": .notSupported, "astray": .ioError, "absurd": .ioError,
      "endless": .ioError,
      "full": .ioError,
      "full2": .ioError,
    ]
    let unreadable = fixture.layer.statistics.unreadable.map { "\($0.count) \($0.reason)" }
    #expect(unreadable == ["2 encrypted", "1 compressed by WavPack"])
    for (name, errno) in expected {
      #expect(throws: errno, "\(name)") { try fixture.content(name) }
      #expect(throws: errno, "\(name) again") { try fixture.content(name) }
    }
    #expect(try fixture.text("first") == "fine")
    #expect(try fixture.text("last") == "fine")
    #expect(try fixture.text("empty").isEmpty)
    #expect(try fixture.text("empty2").isEmpty)
    #expect(fixture.cache.statistics.bytes < 10_000, "damaged entries are not cached")
  }

  @Test("entries that share bytes fail with EIO")
  func overlapping() throws {
    var inner = ZipBuilder.Entry("inner", "x")
    inner.offsetError = -1000
    let fixture = try ArchiveFixture([
      .init("before", bytes(2000)), .init("outer", bytes(2000)), inner, .init("after", "fine"),
    ])
    #expect(throws: Errno.ioError) { try fixture.content("outer") }
    #expect(try fixture.content("before") == bytes(2000))
    #expect(try fixture.text("after") == "fine")
  }

  @Test("the cache evicts contents to keep its budget")
  func budget() throws {
    let entries = (0..<40).map { ZipBuilder.Entry(ByteString("\($0)"), bytes(100_000, seed: $0), .deflated) }
    let fixture = try ArchiveFixture(entries, budget: 1 << 20)
    let files = try (0..<40).map { try fixture.open("\($0)") }
    for round in 0..<2 {
      for (index, file) in files.enumerated() {
        #expect(try file.readAll() == bytes(100_000, seed: UInt64(index)), "round \(round)")
        #expect(fixture.cache.statistics.bytes <= 1 << 20)
      }
    }
    let misses = fixture.cache.statistics.misses
    #expect(misses == 80)
    _ = try files[39].readAll()
    #expect(fixture.cache.statistics.misses == misses, "the last one is still cached")
  }

  @Test("an entry larger than the budget is readable at any offset", arguments: [0, 2])
  func largerThanBudget(threads: Int) throws {
    let chunk = bytes(1 << 20)
    var content: [UInt8] = []
    for index in 0..<40 {
      content.append(UInt8(index))
      content += chunk[1...]
    }
    let fixture = try ArchiveFixture([.init("big", content, .deflated)], budget: 1 << 20, threads: threads)
    let file = try fixture.open("big")
    #expect(try file.readAll() == content)
    for index in [39, 0, 20, 3, 38] {
      var byte: UInt8 = 255
      let count = try withUnsafeMutableBytes(of: &byte) { try file.read(into: $0, at: Int64(index << 20)) }
      #expect(count == 1 && byte == UInt8(index))
    }
    #expect(fixture.cache.statistics.bytes <= 40 << 20)
  }

  @Test("entries that are larger than the cache are read within its budget", arguments: [0, 2])
  func withinBudget(threads: Int) throws {
    let contents = [UInt8(3), 4].map { [UInt8](repeating: $0, count: 24 << 20) }
    let budget = 12 << 20
    let fixture = try ArchiveFixture(
      contents.enumerated().map { .init(ByteString("\($0)"), $1, .deflated) }, budget: budget,
      threads: threads)
    let files = try (0..<2).map { try fixture.open("\($0)") }
    var part = [UInt8](repeating: 0, count: 1 << 18)
    var most = 0
    for offset in stride(from: 0, to: 24 << 20, by: part.count) {
      for (file, content) in zip(files, contents) {
        let count = try part.withUnsafeMutableBytes { buffer throws(Errno) in
          try file.read(into: buffer, at: Int64(offset))
        }
        #expect(part[..<count] == content[offset..<offset + count])
        most = max(most, fixture.cache.statistics.bytes)
      }
    }
    // The chunk that each thread decodes is counted before others make room for it.
    #expect(most > budget / 2 && most <= budget + 2 * ArchiveContent.chunkSize)
  }

  @Test("concurrent readers of an entry share one decoding")
  func once() throws {
    let content = bytes(2_000_000)
    let fixture = try ArchiveFixture([.init("big", content, .deflated)], threads: 2)
    let file = try fixture.open("big")
    let outcomes = Locked<[Bool]>([])
    let threads = try (0..<8).map { _ in
      ThreadHandle(
        try Thread(name: "reader") {
          let isRight = (try? file.readAll()) == content
          outcomes.withLock { $0.append(isRight) }
        })
    }
    for thread in threads { thread.join() }
    #expect(outcomes.withLock { $0 } == Array(repeating: true, count: 8))
    #expect(fixture.cache.statistics.bytes < 2_500_000)
    #expect(fixture.cache.statistics.contents == 1)
  }

  @Test("the first bytes of a large entry are returned before it is decoded entirely")
  func firstBytes() throws {
    let fixture = try ArchiveFixture([.init("big", bytes(30_000_000), .deflated)], threads: 1)
    let file = try fixture.open("big")
    var byte: UInt8 = 0
    _ = try withUnsafeMutableBytes(of: &byte) { try file.read(into: $0, at: 0) }
    // Decoding continues by the read-ahead, but not to the end.
    usleep(200_000)
    #expect(fixture.cache.statistics.bytes < 10_000_000)
  }
}

extension ArchiveContentTests {
  @Test("a content that claims to be complete without storage is found")
  func brokenInvariant() throws {
    let fixture = try ArchiveFixture([ZipBuilder.Entry("file", [1, 2, 3])])
    let source = try ArchiveSource(path: fixture.path.bytes)
    let header = LocalHeader(source: source, offset: 0, end: 100, container: nil)
    var state = ArchiveContent.State(node: ArchiveNode(), header: header, attributes: source.attributes)
    #expect(state.brokenInvariant() == nil)
    state.verifiedEnd = 1
    #expect(state.brokenInvariant() == "read beyond the end")
    state.isComplete = true
    #expect(state.brokenInvariant() == "storage that is neither complete nor being filled")
  }
}
