#if !Archives
import Posix

// What takes the place of decoders in a package without the trait `Archives`, which needs none of the headers of zlib,
// libbz2 and libarchive. No archive is opened, so that most of it is never called.

/// The entries of an archive, which is refused.
struct ContainerListing {
  let format: ContainerFormat
  let records: [any ArchiveRecord]

  init?(
    _ source: ArchiveSource, _ owners: ArchiveOwners, progress: (UInt64, UInt64) -> Void = { _, _ in }
  ) throws(ArchiveError) {
    throw .unsupported("an archive, which needs the trait 'Archives' of the package bundlefs; it is off")
  }

  func addEntries(to builder: inout ArchiveIndexBuilder) {}
}

final class Container: Sendable {
  static let sequential: UInt16 = 0xFF
  let format: ContainerFormat
  let hasAppended = false

  init(_ listing: ContainerListing, of source: ArchiveSource, _ tree: ArchiveTree) { format = listing.format }
}

enum InflateDecoder {
  static let method: UInt16 = 8
}

extension EntryDecoder {
  static func canDecode(_ method: UInt16) -> Bool { false }

  static func make(_ entry: CompressedEntry, passwords: [[UInt8]]) throws(Errno) -> EntryDecoder {
    throw .notSupported
  }
}

extension ArchiveLayer {
  func setLimits(of index: ArchiveIndex) {}
}

extension UnsafeRawBufferPointer {
  /// The CRC-32 of the bytes after others with the CRC-32 `former`.
  func crc32(after former: UInt32 = 0) -> UInt32 {
    ~reduce(~former) { checksum, byte in
      (0..<8).reduce(checksum ^ UInt32(byte)) { rest, _ in rest >> 1 ^ (rest & 1 == 0 ? 0 : 0xEDB8_8320) }
    }
  }
}

extension UInt32 {
  /// The CRC-32 of zeros after bytes with the CRC-32 `former`.
  static func crc32(afterZeros count: UInt64, _ former: UInt32) -> UInt32 {
    (0..<count).reduce(former) { checksum, _ in withUnsafeBytes(of: UInt8(0)) { $0.crc32(after: checksum) } }
  }
}
#endif
