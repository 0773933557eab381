import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// Numbers in archives, and times of archives, that exceed what the types hold.
@Suite struct ArchiveLimitTests {
  @Test(
    "an archive with a time that 64 bits of nanoseconds cannot hold", arguments: ["2300-01-01", "1600-01-01"])
  func extremeTime(_ day: String) throws {
    let folder = try TemporaryFolder()
    let path = folder / "empty.zip"
    try path.write(ZipBuilder([]).bytes)
    #expect(try Command(["touch", "-d", ByteString(day), path]).run().status == 0)
    // Some file systems do not store such a time; then nothing can fail here.
    let layer = try ArchiveLayer(archivePath: path.bytes, index: 0, cache: ContentCache())
    let modified = try layer.root.attributes().modified
    #expect(day < "2000" ? modified.seconds < 0 : modified.seconds > 4_000_000_000)
  }

  @Test("an archive with the earliest and the latest time that a file system stores")
  func extremeSeconds() throws {
    // tmpfs stores any number of seconds.
    let path = ByteString("/dev/shm/bundlefs-time.\(getpid()).zip")
    defer { try? path.remove() }
    try path.write(ZipBuilder([.init("a", "1")]).bytes)
    for seconds in [Int.min, Int.max] {
      let time = timespec(tv_sec: seconds, tv_nsec: 999_999_999)
      let isSet = try withCName(path.bytes) { utimensat(AT_FDCWD, $0, [time, time], 0) == 0 }
      #expect(isSet)
      let layer = try ArchiveLayer(archivePath: path.bytes, index: 0, cache: ContentCache())
      #expect(!layer.isOutdated)
    }
  }

  /// An entry whose sizes are in the zip64 field.
  private static func entry(_ name: ByteString, size: UInt64, _ method: UInt16 = 8) -> ZipBuilder.Entry {
    var entry = ZipBuilder.Entry(name, "content")
    entry.sizeError = 0xFFFF_FFFF - 7
    entry.claimedMethod = method
    entry.extra =
      ZipBuilder.number(1, 2) + ZipBuilder.number(8, 2) + ZipBuilder.number(Int(bitPattern: UInt(size)), 8)
    return entry
  }

  @Test("a size beyond off_t is skipped and counted, and the largest below it is shown")
  func extremeSizes() throws {
    let largest = UInt64(Int64.max)
    let sizes: [UInt64] = [1 << 63, 1 << 63 + 1, .max - 511, .max - 510, .max]
    var entries = sizes.enumerated().map { Self.entry(ByteString("huge\($0.offset)"), size: $0.element) }
    entries += [Self.entry("large", size: largest), Self.entry("stored", size: largest, 0)]
    let fixture = try ArchiveFixture(entries + [.init("good", "good")])
    #expect(try fixture.paths() == ["good", "large", "stored"])
    #expect(fixture.skipped == [.tooLarge: sizes.count])
    #expect(try fixture.text("good") == "good")
    for name in ["large", "stored"] {
      #expect(try fixture.attributes(name).blocks == largest / 512 + 1)
      let file = try fixture.open(name)
      #expect(try file.seek(0, whence: Descriptor.seekHole) == Int64(largest))
      #expect(throws: Errno.self) { try file.readAll(limit: 100) }
    }
  }

  @Test("offsets and compressed sizes of which the sum exceeds 64 bits")
  func extremeOffsets() throws {
    var entries: [ZipBuilder.Entry] = []
    let offsets: [UInt64] = [.max, .max - 29, .max - 30, 1 << 63, 1 << 62]
    for (index, offset) in offsets.enumerated() {
      var entry = ZipBuilder.Entry(ByteString("file\(index)"), "content", .deflated)
      // The sentinels of the zip64 field: a block has 5 bytes and the content, a local header 30 and the name.
      entry.compressedSizeError = 0xFFFF_FFFF - 12
      entry.offsetError = 0xFFFF_FFFF - index * (30 + 5 + 12)
      entry.extra = ZipBuilder.number(1, 2) + ZipBuilder.number(16, 2)
      for number in [UInt64.max - UInt64(index), offset] {
        entry.extra += ZipBuilder.number(Int(bitPattern: UInt(number)), 8)
      }
      entries.append(entry)
    }
    let fixture = try ArchiveFixture(entries)
    for index in entries.indices {
      #expect(throws: Errno.self) { try fixture.content("file\(index)") }
    }
  }
}
