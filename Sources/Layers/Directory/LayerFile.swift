import CLibrary
import Posix

/// An open file of a layer: a descriptor, or an entry of an archive. Readers keep a reference while they
/// read.
public final class LayerFile: Sendable {
  private enum Kind {
    /// An open file descriptor.
    case file(CInt)
    case entry(ArchiveContent)
  }
  private let kind: Kind
  /// Passes the calls on the file; nil for one that belongs to no layer.
  let gate: LayerGate?
  /// The size at open time; a read that ends there needs no further `pread(2)`.
  private let openedSize: UInt64?
  /// Whether it was a regular file with a link count of 1 at open time.
  public let hadSingleLink: Bool
  /// The attributes of a file that is in no layer. By reference: one in a thousand files has them, and the daemon keeps
  /// an instance for each file that was read.
  private let fixed: FixedStatus?

  private final class FixedStatus: Sendable {
    let attributes: FileStatus

    init(_ attributes: FileStatus) { self.attributes = attributes }
  }

  /// A file of a directory, and its attributes as of the open.
  public init(
    _ descriptor: consuming Descriptor, _ attributes: FileStatus? = nil, _ gate: LayerGate? = nil
  ) {
    kind = .file(descriptor.release())
    self.gate = gate
    openedSize = attributes?.size
    hadSingleLink = attributes.map { $0.isRegular && $0.links == 1 } ?? false
    fixed = nil
  }

  /// A file in memory that does not change.
  init(_ descriptor: consuming Descriptor, fixed attributes: FileStatus) {
    kind = .file(descriptor.release())
    (gate, openedSize, hadSingleLink, fixed) = (nil, attributes.size, true, FixedStatus(attributes))
  }

  init(_ content: ArchiveContent) {
    kind = .entry(content)
    gate = content.gate
    openedSize = nil
    hadSingleLink = content.attributes.isRegular && content.attributes.links == 1
    fixed = nil
  }

  deinit {
    guard case .file(let file) = kind else { return }
    if let gate { gate.close(file) } else { close(file) }
  }

  /// Whether a thread decodes the entry at present, perhaps ahead of its readers.
  var isBeingDecoded: Bool {
    guard case .entry(let content) = kind else { return false }
    return content.state.withLock { $0.isDecoding }
  }

  /// Makes a call on the file.
  @inline(__always)
  private func call<Result>(
    _ file: CInt, _ body: (borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    guard let gate else { return try Descriptor.withBorrowed(file, body) }
    return try gate.call { () throws(Errno) in try Descriptor.withBorrowed(file, body) }
  }

  /// The size at open time, or else the present one.
  public func lastSeenSize() throws(Errno) -> UInt64 {
    if let openedSize { return openedSize }
    return try attributes().size
  }

  /// The present attributes.
  public func attributes() throws(Errno) -> FileStatus {
    if let fixed { return fixed.attributes }
    switch kind {
    case .file(let file): return try call(file) { descriptor throws(Errno) in try descriptor.attributes() }
    case .entry(let content): return content.attributes
    }
  }

  /// Reads until the buffer is full or the file ends; returns the byte count. Blocks while an entry is
  /// decoded.
  /// - Throws: EACCES for an encrypted entry; EIO for a damaged one; EOPNOTSUPP for a compression method
  ///   that no decoder has; ESTALE if the archive was overwritten.
  public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
    switch kind {
    case .file(let file):
      return try call(file) { descriptor throws(Errno) in
        try descriptor.read(into: buffer, at: offset, end: openedSize)
      }
    case .entry(let content):
      return try content.gate.call { () throws(Errno) in try content.read(into: buffer, at: offset) }
    }
  }

  /// Reads like `read`, but without waiting for a decoder.
  /// - Parameter isCounted: whether the read counts as a hit or miss of the cache.
  /// - Returns: nil if it would block: see `whenReadable`.
  @inline(__always)
  public func readNonBlocking(
    into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, isCounted: Bool = true
  ) throws(Errno) -> Int? {
    switch kind {
    case .file(let file):
      return try call(file) { descriptor throws(Errno) in
        try descriptor.read(into: buffer, at: offset, end: openedSize)
      }
    case .entry(let content):
      return try content.gate.call { () throws(Errno) in
        try content.readNonBlocking(into: buffer, at: offset, isCounted: isCounted)
      }
    }
  }

  /// Calls the function on any thread once the range is readable, or with the error.
  public func whenReadable(at offset: Int64, count: Int, _ completion: @escaping @Sendable (Errno?) -> Void) {
    switch kind {
    case .file: completion(nil)
    case .entry(let content): content.whenReadable(at: offset, count: count, completion)
    }
  }

  /// Reads the content from the beginning.
  /// - Parameter limit: reading stops after more than this many bytes.
  public func readAll(limit: Int = .max) throws(Errno) -> [UInt8] {
    try readContent(limit: limit) { chunk, offset throws(Errno) in try read(into: chunk, at: offset) }
  }

  /// The target of a symbolic link, without NUL.
  public func linkTarget() throws(Errno) -> [UInt8] {
    switch kind {
    case .file(let file): return try call(file) { descriptor throws(Errno) in try descriptor.linkTarget() }
    case .entry: return [UInt8](try readAll(limit: 4096).prefix { $0 != 0 })
    }
  }

  /// The next data or hole at or after an offset, as `lseek(2)`.
  /// - Throws: ENXIO beyond the end; EINVAL for another `whence`.
  public func seek(_ offset: Int64, whence: CInt) throws(Errno) -> Int64 {
    switch kind {
    case .file(let file):
      return try call(file) { descriptor throws(Errno) in try descriptor.seek(offset, whence: whence) }
    case .entry(let content):
      let size = Int64(clamping: content.size)
      guard offset >= 0, offset < size else { throw .noSuchAddressOrDevice }
      // The only hole is the one at the end of the file.
      return whence == Descriptor.seekHole ? size : offset
    }
  }

  /// The value of an extended attribute.
  public func extendedAttribute(
    _ name: CName, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    switch kind {
    case .file(let file):
      return try call(file) { descriptor throws(Errno) in try descriptor.extendedAttribute(name, into: buffer)
      }
    case .entry(let content):
      return try ArchivedAttributes.value(of: name, in: content.extendedAttributes, into: buffer)
    }
  }

  /// The names of the extended attributes, each followed by NUL.
  public func extendedAttributeNames() throws(Errno) -> [UInt8] {
    switch kind {
    case .file(let file):
      return try call(file) { descriptor throws(Errno) in try descriptor.extendedAttributeNames() }
    case .entry(let content): return ArchivedAttributes.names(of: content.extendedAttributes)
    }
  }

  /// Whether the file has a descriptor, unlike an entry of an archive.
  public var hasDescriptor: Bool {
    switch kind {
    case .file: true
    case .entry: false
    }
  }

  /// The descriptor's number; nil for an entry of an archive.
  public var number: CInt? { if case .file(let file) = kind { file } else { nil } }

  /// Calls the body with the file's descriptor.
  /// - Throws: EOPNOTSUPP for an entry of an archive; what the body throws.
  public func withDescriptor<Result>(
    _ body: (borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    switch kind {
    case .file(let file): return try call(file, body)
    case .entry: throw .notSupported
    }
  }

  /// Calls the body with a path to watch the file by inotify(7); returns nil for an entry of an archive,
  /// which is immutable.
  public func withWatchPath<Result>(_ body: (CName) throws(Errno) -> Result) throws(Errno) -> Result? {
    switch kind {
    case .file(let file):
      return try call(file) { descriptor throws(Errno) in try withCName(descriptor.procPath, body) }
    case .entry: return nil
    }
  }
}
