#if Archives
import Posix

/// The files of an ISO 9660 image (ECMA-119) that consist of several extents, which may be anywhere. libarchive reads them,
/// but does not say which they are.
struct SplitImageFiles {
  private static let sectorSize = 2048
  /// Descriptors of volumes, and bytes of directories, beyond which no image is searched.
  private static let mostDescriptors: UInt64 = 64
  private static let mostBytes = 256 << 20
  /// Directories and files beyond which nothing more is searched.
  private static let mostEntries = 1 << 20

  private let blockSize: UInt64 = 2048
  /// The offsets of the first extents.
  private var starts: Set<UInt64> = []
  /// Whether a part of the image could not be searched.
  private var isIncomplete = false

  private struct Directory: Hashable {
    let location: UInt32
    let size: UInt32
  }
  private var found: [Directory] = []
  private var known: Set<Directory> = []
  private var bytesLeft = mostBytes

  /// - Throws: errors of reading the file but its end.
  init(_ source: ArchiveSource) throws(Errno) {
    let sector = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.sectorSize, alignment: 16)
    defer { sector.deallocate() }
    for number in 16..<16 + Self.mostDescriptors {
      guard try read(number * UInt64(Self.sectorSize), into: sector, source) else { return }
      let bytes = UnsafeRawBufferPointer(sector)
      guard bytes.dropFirst().starts(with: "CD001".utf8), bytes[0] != 255 else { break }
      if bytes[0] == 1 || bytes[0] == 2 { addRoot(bytes) }
    }
    while !isIncomplete, let directory = found.popLast() { try search(directory, source, sector) }
  }

  /// Whether the file that begins at an offset is one of them, or may be.
  func contains(_ start: UInt64) -> Bool { isIncomplete || starts.contains(start) }

  /// - Returns: whether there is a whole sector.
  private mutating func read(
    _ offset: UInt64, into sector: UnsafeMutableRawBufferPointer, _ source: ArchiveSource
  ) throws(Errno) -> Bool {
    guard offset <= source.size, source.size - offset >= UInt64(sector.count) else {
      isIncomplete = true
      return false
    }
    try source.read(into: sector, at: offset)
    return true
  }

  /// - Parameter descriptor: of a volume, whose names may be in another encoding (Joliet).
  private mutating func addRoot(_ descriptor: UnsafeRawBufferPointer) {
    let size = UInt64(descriptor.number(at: 128, as: UInt16.self))
    // libarchive divides directories by blocks, which are as large as sectors in all but old images.
    if size != Self.sectorSize { return isIncomplete = true }
    addDirectory(UnsafeRawBufferPointer(rebasing: descriptor[156..<190]))
  }

  private mutating func addDirectory(_ record: UnsafeRawBufferPointer) {
    let directory = Directory(
      location: record.number(at: 2, as: UInt32.self), size: record.number(at: 10, as: UInt32.self))
    if known.insert(directory).inserted { found.append(directory) }
  }

  private mutating func search(
    _ directory: Directory, _ source: ArchiveSource, _ sector: UnsafeMutableRawBufferPointer
  ) throws(Errno) {
    var offset = UInt64(directory.location) * blockSize
    let end = offset + UInt64(directory.size)
    while offset < end {
      bytesLeft -= Self.sectorSize
      if bytesLeft < 0 || known.count + starts.count > Self.mostEntries { isIncomplete = true }
      guard !isIncomplete, try read(offset, into: sector, source) else { return }
      search(UnsafeRawBufferPointer(sector))
      offset += UInt64(Self.sectorSize)
    }
  }

  /// Searches the records of a sector: none lies across two.
  private mutating func search(_ sector: UnsafeRawBufferPointer) {
    var rest = sector
    while let length = rest.first, length >= 34, Int(length) <= rest.count {
      let record = UnsafeRawBufferPointer(rebasing: rest[..<Int(length)])
      rest = UnsafeRawBufferPointer(rebasing: rest[Int(length)...])
      // The directory itself and its parent are named by these bytes.
      if record[32] == 1, record[33] <= 1 { continue }
      let (isDirectory, hasMore) = (record[25] & 2 != 0, record[25] & 0x80 != 0)
      if isDirectory { addDirectory(record) }
      // The extents that continue it are never the beginning of what is read.
      if hasMore, !isDirectory { starts.insert(UInt64(record.number(at: 2, as: UInt32.self)) * blockSize) }
    }
  }
}
#endif
