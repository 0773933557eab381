#if Archives
import CArchive
import CLibrary
import Posix

/// Reads a container's entries in order by libarchive. Not thread-safe.
final class ContainerReader {
  private let library: bundlefs_libarchive
  private var archive: OpaquePointer
  let source: ArchiveSource
  private(set) var stream: ContainerStream
  private(set) var header: EntryFields
  /// The format of the part that is being read. Of a compressed archive, the kind is known once it has a header.
  var format: ContainerFormat
  /// The format of the first part.
  private(set) var firstFormat: ContainerFormat
  /// The part that is being read, counted from 0, and where `archive` has begun in the stream, or in the file if the part
  /// is not compressed.
  private var part = 0
  private var base: UInt64 = 0
  private var isOpen = false
  /// Whether no header of the part was read yet.
  private var isFirstHeader = true

  /// The number of the entry that is being read, counted from 0; -1 before the first.
  private(set) var ordinal: Int64 = -1
  /// The bytes of it that were read.
  private(set) var offset: UInt64 = 0
  private(set) var isEntryAtEnd = true
  /// What libarchive has returned, and where it is in the entry. Between blocks there are holes.
  private var block = UnsafeRawBufferPointer(start: nil, count: 0)
  private var blockOffset: UInt64 = 0

  /// - Parameter start: the offset of a tar entry's header in the file.
  /// - Throws: EOPNOTSUPP without libarchive or its decoder; ENOMEM.
  init(_ source: ArchiveSource, _ format: ContainerFormat, at start: UInt64 = 0) throws(Errno) {
    guard let library = Libarchive.functions else { throw .notSupported }
    stream = try Self.stream(of: source, format, at: start)
    guard let archive = library.read_new.unsafelyUnwrapped() else { throw .noMemory }
    self.library = library
    self.archive = archive
    self.source = source
    header = EntryFields(library)
    (self.format, firstFormat) = (format, format)
    try format.enable(in: archive, library)
    stream.attach(to: archive, library)
  }

  /// - Throws: EOPNOTSUPP without libarchive or its decoder; ENOMEM.
  static func stream(
    of source: ArchiveSource, _ format: ContainerFormat, at start: UInt64 = 0
  ) throws(Errno) -> ContainerStream {
    switch format.compression {
    case .none: return FileStream(source, at: start)
    case .gzip: return GzipStream(source)
    default:
      guard let library = Libarchive.functions else { throw .notSupported }
      return try FilterStream(source, format.compression, library)
    }
  }

  /// Reads what follows as an archive of its own.
  /// - Parameter base: where `stream` is, in the file or in what it decompresses.
  func begin(_ stream: ContainerStream, _ format: ContainerFormat, base: UInt64) throws(Errno) {
    guard let next = library.read_new.unsafelyUnwrapped() else { throw .noMemory }
    _ = library.read_free.unsafelyUnwrapped(archive)
    archive = next
    (self.stream, self.format, self.base) = (stream, format, base)
    (isOpen, isFirstHeader) = (false, true)
    part += 1
    try format.enable(in: archive, library)
    stream.attach(to: archive, library)
  }

  deinit { _ = library.read_free.unsafelyUnwrapped(archive) }

  /// libarchive's message; nil if there is none.
  var message: String? {
    if stream.hasLongHeader { return "an entry's header is longer than any should be" }
    return stream.damage ?? library.error_string.unsafelyUnwrapped(archive).map { String(cString: $0) }
  }

  /// The offset of the entry's header, and after `nextHeader` that of the first byte of its content, in the stream.
  var headerPosition: Int64 { library.read_header_position.unsafelyUnwrapped(archive) }
  var position: Int64 { Int64(clamping: base) &+ library.filter_bytes.unsafelyUnwrapped(archive, 0) }

  /// - Returns: false at the end.
  /// - Throws: EIO for damage; ENOMEM.
  func nextHeader() throws(Errno) -> Bool {
    if mustFinishEntries { try finishEntry() }
    defer { stream.limitHeader(to: nil) }
    ordinal += 1
    (offset, isEntryAtEnd) = (0, false)
    (block, blockOffset) = (UnsafeRawBufferPointer(start: nil, count: 0), 0)
    var result = readHeader()
    while result == ARCHIVE_EOF {
      guard format.kind == .cpio, try beginNextPart() else { return false }
      result = readHeader()
    }
    // After the last part there may be anything.
    if part > 0, isFirstHeader, message?.contains("Unrecognized archive format") == true { return false }
    try check(result)
    try examineHeader(result)
    return true
  }

  /// - Returns: libarchive's code.
  private func readHeader() -> CInt {
    let former = uselocale(format.hasUnicodeNames ? Self.unicodeLocale : Self.byteLocale)
    defer { uselocale(former) }
    stream.limitHeader(to: format.headerLimit)
    header.entry = nil
    if !isOpen {
      isOpen = true
      let result = library.read_open1.unsafelyUnwrapped(archive)
      if result != ARCHIVE_OK && result != ARCHIVE_WARN { return result }
    }
    var entry: OpaquePointer?
    let result = library.read_next_header.unsafelyUnwrapped(archive, &entry)
    header.entry = result == ARCHIVE_EOF ? nil : entry
    return result
  }

  private func examineHeader(_ result: CInt) throws(Errno) {
    if isFirstHeader { format = format.found(by: archive, library) }
    isFirstHeader = false
    if part == 0 { firstFormat = format }
    // libarchive searches a damaged cpio archive for the next header, and only warns.
    if result == ARCHIVE_WARN, format.kind == .cpio, message?.hasPrefix("Skipped") == true { throw .ioError }
    // It would return such a file without content, and leave out such a directory.
    if result == ARCHIVE_WARN, isOutOfOrder { throw .ioError }
    // In this format it takes what follows an entry without content for its content.
    if format.kind == .rar5, header.size == 0 { isEntryAtEnd = true }
  }

  /// Whether the message is that a part of an image lies before what was read, where libarchive does not go back.
  var isOutOfOrder: Bool { format.kind == .iso9660 && message?.contains("out-of-order") == true }

  /// Whether libarchive would read the rest of an entry, where it skips that of others.
  private var mustFinishEntries: Bool { format.compression != .none && format.headerLimit != nil }

  /// So that the rest of an entry does not count as part of the next header.
  private func finishEntry() throws(Errno) {
    while try nextRun(atMost: UInt64(Int64.max)) != nil {}
  }

  // libarchive converts names to the encoding of the thread's locale. Those of tar archives stay as they are where it
  // cannot; to UTF-8 it would also compose their characters. nil is the locale that the thread has.
  nonisolated(unsafe) private static let byteLocale = newlocale(LC_CTYPE_MASK, "C", nil)
  nonisolated(unsafe) private static let unicodeLocale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nil)

  private func check(_ result: CInt) throws(Errno) {
    if result != ARCHIVE_OK && result != ARCHIVE_WARN { throw stream.failure ?? .ioError }
  }

  /// Reads the next bytes of the entry.
  /// - Returns: how many; 0 at its end.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    var done = 0
    while done < buffer.count, let (bytes, count) = try nextRun(atMost: UInt64(buffer.count - done)) {
      let target = UnsafeMutableRawBufferPointer(rebasing: buffer[done..<done + Int(count)])
      if let bytes {
        target.copyMemory(from: bytes)
      } else {
        target.initializeMemory(as: UInt8.self, repeating: 0)
      }
      done += Int(count)
    }
    return done
  }

  /// The next run of bytes, or of zeros, which are nil; nil at the entry's end.
  func nextRun(atMost most: UInt64) throws(Errno) -> (bytes: UnsafeRawBufferPointer?, count: UInt64)? {
    while !isEntryAtEnd {
      let start = offset - min(offset, blockOffset)
      if offset < blockOffset {
        let count = min(most, blockOffset - offset)
        offset += count
        return (nil, count)
      }
      if start < UInt64(block.count) {
        let count = min(most, UInt64(block.count) - start)
        offset += count
        return (UnsafeRawBufferPointer(rebasing: block[Int(start)..<Int(start + count)]), count)
      }
      try nextBlock()
    }
    // A hole at the end has no block.
    guard offset < header.size else { return nil }
    let count = min(most, header.size - offset)
    offset += count
    return (nil, count)
  }

  /// Skips at most so many bytes of a hole.
  /// - Returns: how many; 0 if the next byte is in no hole.
  func skipHole(atMost most: UInt64) throws(Errno) -> UInt64 {
    while !isEntryAtEnd, offset >= blockOffset, offset - blockOffset >= UInt64(block.count) {
      try nextBlock()
    }
    // A hole at the end has no block.
    let end = isEntryAtEnd ? header.size : blockOffset
    let count = min(most, end - min(offset, end))
    offset += count
    return count
  }

  private var splitFiles: SplitImageFiles?

  /// Where the content of an archive that is not compressed is in the file, as it is. To be called after `nextHeader`,
  /// if there is content.
  /// - Returns: nil if it must be read in order.
  func contentPosition(in source: ArchiveSource) throws(Errno) -> UInt64? {
    guard format.kind == .iso9660 else { return UInt64(max(0, position)) }
    // Larger files always have several extents.
    guard header.size <= Self.largestExtent else { return nil }
    if splitFiles == nil { splitFiles = try SplitImageFiles(source) }
    try nextBlock()
    guard !isEntryAtEnd, blockOffset == 0, block.count > 0, let start = UInt64(exactly: position),
      start <= source.size, UInt64(block.count) <= source.size - start, splitFiles?.contains(start) == false
    else { return nil }
    // Files can be compressed (zisofs).
    let isStored = try withUnsafeTemporaryBytes(block.count) { buffer throws(Errno) in
      try source.read(into: buffer, at: start)
      return buffer.elementsEqual(block)
    }
    return isStored ? start : nil
  }

  private static let largestExtent: UInt64 = 1 << 32 - 2048

  private func nextBlock() throws(Errno) {
    var (start, count, position): (UnsafeRawPointer?, Int, Int64) = (nil, 0, 0)
    let result = library.read_data_block.unsafelyUnwrapped(archive, &start, &count, &position)
    if result == ARCHIVE_EOF { return isEntryAtEnd = true }
    // A warning is of a wrong checksum.
    guard result == ARCHIVE_OK, position >= offset else { throw stream.failure ?? .ioError }
    (block, blockOffset) = (UnsafeRawBufferPointer(start: start, count: count), UInt64(position))
  }
}

/// The fields of an entry's header.
struct EntryFields {
  private let library: bundlefs_libarchive
  fileprivate var entry: OpaquePointer?

  init(_ library: bundlefs_libarchive) { self.library = library }

  /// Valid until the next header.
  var path: UnsafeRawBufferPointer? {
    bytes(
      library.entry_pathname.unsafelyUnwrapped(entry) ?? library.entry_pathname_utf8.unsafelyUnwrapped(entry))
  }

  /// The path of a file of which this is a further name.
  var hardLink: UnsafeRawBufferPointer? {
    bytes(
      library.entry_hardlink.unsafelyUnwrapped(entry) ?? library.entry_hardlink_utf8.unsafelyUnwrapped(entry))
  }

  var linkTarget: UnsafeRawBufferPointer? {
    bytes(
      library.entry_symlink.unsafelyUnwrapped(entry) ?? library.entry_symlink_utf8.unsafelyUnwrapped(entry))
  }

  private func bytes(_ string: UnsafePointer<CChar>?) -> UnsafeRawBufferPointer? {
    string.map { UnsafeRawBufferPointer(start: $0, count: strlen($0)) }
  }

  /// Bytes; 0 before the first header and after the last. A negative size becomes one that no file can have.
  var size: UInt64 { entry == nil ? 0 : UInt64(bitPattern: library.entry_size.unsafelyUnwrapped(entry)) }

  /// `st_mode`, as the archive has it.
  var mode: UInt32 {
    library.entry_filetype.unsafelyUnwrapped(entry) | library.entry_perm.unsafelyUnwrapped(entry) & 0o7777
  }

  /// The numbers; names of users mean others on each machine. An archive can hold any number.
  var owner: Int64 { library.entry_uid.unsafelyUnwrapped(entry) }
  var group: Int64 { library.entry_gid.unsafelyUnwrapped(entry) }
  var rdev: UInt { library.entry_rdev.unsafelyUnwrapped(entry) }

  /// Calls the body with each name and value.
  func forEachExtendedAttribute(_ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Void) {
    guard library.entry_xattr_reset.unsafelyUnwrapped(entry) > 0 else { return }
    var (name, value, size): (UnsafePointer<CChar>?, UnsafeRawPointer?, Int) = (nil, nil, 0)
    while library.entry_xattr_next.unsafelyUnwrapped(entry, &name, &value, &size) == ARCHIVE_OK {
      guard let name = bytes(name) else { continue }
      body(name, UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : size))
    }
  }

  var isWhiteout: Bool {
    FileKind(rawValue: mode & 0o170000) == .characterDevice
      && rdev == 0
  }

  /// Nanoseconds since the epoch.
  var modified: Int64 {
    let seconds = Int64(library.entry_mtime.unsafelyUnwrapped(entry))
    let nanoseconds = Int64(library.entry_mtime_nsec.unsafelyUnwrapped(entry))
    return TimeSpec(seconds: seconds, nanoseconds: UInt32(clamping: nanoseconds)).clampedNanoseconds
  }

  var isSparse: Bool { library.entry_sparse_reset.unsafelyUnwrapped(entry) > 0 }
  var isEncrypted: Bool { entry != nil && library.entry_is_data_encrypted.unsafelyUnwrapped(entry) != 0 }
}
#endif
