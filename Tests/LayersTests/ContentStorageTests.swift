import Posix
import TestSupport
import Testing

@testable import Layers

/// Entries of several megabytes where the temporary folder has no room for them.
@Suite struct ContentStorageTests {
  private static let size = 3 << 20

  /// Mounts a file system of 1 MiB.
  private static func withSmallDisk(_ body: (ByteString) throws -> Void) throws {
    let folder = try TemporaryFolder()
    let disk = try folder.folder("disk")
    try Command(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk]).check()
    defer { _ = try? Command(["umount", "-l", disk]).run() }
    try body(disk)
  }

  private static func storage(_ directories: [ByteString], limit: UInt64 = 16 << 20) throws -> ContentStorage
  {
    try ContentStorage(
      size: UInt64(size), residentLimit: limit, mayUseFile: true, directories: directories.map(\.bytes))
  }

  @Test("memory is used where no folder has room")
  func fallback() throws {
    try Self.withSmallDisk { disk in
      #expect(try !Self.storage([disk]).isOnDisk)
      #expect(try !Self.storage([]).isOnDisk)
      #expect(try Self.storage([disk], limit: 1 << 19).isOnDisk)
      let storage = try Self.storage([disk])
      #expect(storage.isFile)
      let content = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.size, alignment: 16)
      defer { content.deallocate() }
      for index in 0..<Self.size { content[index] = UInt8(truncatingIfNeeded: index &* 7) }
      try storage.write(UnsafeRawBufferPointer(content), at: 0)
      storage.discard(0..<65536)
      let end = UnsafeMutableRawBufferPointer.allocate(byteCount: 1000, alignment: 16)
      defer { end.deallocate() }
      try storage.read(into: end, at: UInt64(Self.size - 1000))
      #expect(end.elementsEqual(content.suffix(1000)))
    }
  }
}
