import Glibc
import Posix

/// A file of a layer, open: a descriptor, or an entry of an archive. Those who read it hold it meanwhile.
public final class LayerFile: Sendable {
  private enum Kind: ~Copyable {
    case descriptor(Descriptor)
    case entry(ArchiveContent)
  }
  private let kind: Kind
  /// Bytes that it had when it was opened: a read that ends there was complete.
  private let openedSize: UInt64?
  /// Whether it was a regular file with a single name then.
  public let hadSingleLink: Bool

  /// A file of a directory.
  /// - Parameter attributes: as they were just seen.
  public init(_ descriptor: consuming Descriptor, _ attributes: FileStatus? = nil) {
    kind = .descriptor(descriptor)
    openedSize = attributes?.size
    hadSingleLink = attributes.map { $0.isRegular && $0.links == 1 } ?? false
  }

  init(_ content: ArchiveContent) {
    kind = .entry(content)
    openedSize = nil
    hadSingleLink = content.attributes.isRegular
  }

  /// Bytes that it had when it was opened, or has now.
  public func lastSeenSize() throws(Errno) -> UInt64 {
    if let openedSize { return openedSize }
    return try attributes().size
  }

  /// The attributes as they are now.
  public func attributes() throws(Errno) -> FileStatus {
    switch kind {
    case .descriptor(let descriptor): return try descriptor.attributes()
    case .entry(let content): return content.attributes
    }
  }

  /// Reads at an offset until the buffer is full or the file ends; the count of bytes. Waits while an entry is
  /// unpacked.
  /// - Throws: EACCES for an encrypted entry; EIO for a damaged one; EOPNOTSUPP for one that is packed in a
  ///   way that libzip does not know; ESTALE where the archive was written over.
  public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
    switch kind {
    case .descriptor(let descriptor): return try descriptor.read(into: buffer, at: offset, end: openedSize)
    case .entry(let content): return try content.read(into: buffer, at: offset)
    }
  }

  /// As `read`, but never waits for more than a moment.
  /// - Parameter isCounted: whether it counts in the cache's hit rate.
  /// - Returns: nil where that would be: `whenReadable` tells when to ask again.
  @inline(__always)
  public func readNonBlocking(
    into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, isCounted: Bool = true
  ) throws(Errno) -> Int? {
    switch kind {
    case .descriptor(let descriptor): return try descriptor.read(into: buffer, at: offset, end: openedSize)
    case .entry(let content):
      return try content.readNonBlocking(into: buffer, at: offset, isCounted: isCounted)
    }
  }

  /// Has a function called, by some thread, once a part can be read, or with the reason why not.
  public func whenReadable(at offset: Int64, count: Int, _ completion: @escaping @Sendable (Errno?) -> Void) {
    switch kind {
    case .descriptor: completion(nil)
    case .entry(let content): content.whenReadable(at: offset, count: count, completion)
    }
  }

  /// Reads everything from the beginning.
  /// - Parameter limit: when more bytes than these were read, that is enough.
  public func readAll(limit: Int = .max) throws(Errno) -> [UInt8] {
    try readContent(limit: limit) { chunk, offset throws(Errno) in try read(into: chunk, at: offset) }
  }

  /// Where a symbolic link points; its bytes, without NUL.
  public func linkTarget() throws(Errno) -> [UInt8] {
    switch kind {
    case .descriptor(let descriptor): return try descriptor.linkTarget()
    case .entry: return [UInt8](try readAll(limit: 4096).prefix { $0 != 0 })
    }
  }

  /// The next data (or hole) at or after an offset, as lseek(2) finds it.
  /// - Throws: ENXIO beyond the end; EINVAL for another `whence`.
  public func seek(_ offset: Int64, whence: CInt) throws(Errno) -> Int64 {
    switch kind {
    case .descriptor(let descriptor): return try descriptor.seek(offset, whence: whence)
    case .entry(let content):
      let size = Int64(content.size)
      guard offset >= 0, offset < size else { throw .noSuchAddressOrDevice }
      // No holes but the one at the end of every file.
      return whence == Descriptor.seekHole ? size : offset
    }
  }

  /// The value of an extended attribute; an archive has none.
  public func extendedAttribute(
    _ name: CName, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    switch kind {
    case .descriptor(let descriptor): return try descriptor.extendedAttribute(name, into: buffer)
    case .entry: throw .noData
    }
  }

  /// The names of the extended attributes, each followed by NUL.
  public func extendedAttributeNames() throws(Errno) -> [UInt8] {
    switch kind {
    case .descriptor(let descriptor): return try descriptor.extendedAttributeNames()
    case .entry: return []
    }
  }

  /// Whether it is a file of a directory, and no archive's.
  public var hasDescriptor: Bool {
    switch kind {
    case .descriptor: true
    case .entry: false
    }
  }

  /// Runs the body with the file's descriptor.
  /// - Throws: EOPNOTSUPP for an entry of an archive, which has none; what the body throws.
  public func withDescriptor<Result>(
    _ body: (borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    switch kind {
    case .descriptor(let descriptor): return try body(descriptor)
    case .entry: throw .notSupported
    }
  }

  /// Runs the body with a path by which inotify(7) finds the file itself; nil for an entry of an archive,
  /// which never changes: another version is another file.
  public func withWatchPath<Result>(_ body: (CName) throws(Errno) -> Result) throws(Errno) -> Result? {
    switch kind {
    case .descriptor(let descriptor):
      return try withCName(descriptor.procPath, body)
    case .entry: return nil
    }
  }
}
