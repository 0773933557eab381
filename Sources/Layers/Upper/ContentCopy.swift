import Posix

/// Copies the content of a file to an empty file of the upper layer, with its holes, in chunks that are short calls on
/// both layers.
struct ContentCopy {
  private let source: LayerFile
  private let upper: UpperLayer
  private let writer: EntryOwner?
  /// The most bytes to copy.
  private let end: Int64
  private var canCopyRanges: Bool
  private let progress: ((Int) -> Void)?

  private static let chunk: Int64 = 4 << 20
  /// How far the disk may be behind. What is left at the end takes one call, which must be short.
  private static let behind: Int64 = 16 << 20

  /// - Parameters:
  ///   - writer: as whom to write; nil for this process's user.
  ///   - size: the most bytes to copy; nil for all.
  ///   - progress: is passed the number of bytes of each chunk.
  init(
    of source: LayerFile, to upper: UpperLayer, as writer: EntryOwner?, size: UInt64?,
    progress: ((Int) -> Void)? = nil
  ) throws(Errno) {
    self.source = source
    (self.upper, self.writer) = (upper, writer)
    self.progress = progress
    end = Int64(clamping: min(try source.attributes().size, size ?? .max))
    canCopyRanges = source.hasDescriptor
  }

  /// Copies the content, and waits until the disk has it.
  /// - Parameter synchronizes: if not, the disk only begins.
  mutating func run(to target: borrowing Descriptor, synchronizes: Bool = true) throws(Errno) {
    if end == 0 { return }
    if try !clone(to: target) {
      try copySegments(to: target)
    }
    if synchronizes { return try synchronize(target) }
    try upper.layer.gate.call { () throws(Errno) in
      target.writeBack(at: 0, count: end, waits: false)
    }
  }

  /// Makes a call on the upper layer that takes space.
  private func writing<Result>(_ body: () throws(Errno) -> Result) throws(Errno) -> Result {
    try upper.layer.gate.call { () throws(Errno) in
      guard let writer else { return try body() }
      return try upper.asOwner(writer, body)
    }
  }

  private func synchronize(_ target: borrowing Descriptor) throws(Errno) {
    try upper.layer.gate.call { () throws(Errno) in try target.synchronize(dataOnly: true) }
  }

  /// - Returns: false if the content must be copied.
  private func clone(to target: borrowing Descriptor) throws(Errno) -> Bool {
    guard source.hasDescriptor, try source.attributes().size == UInt64(end) else { return false }
    do throws(Errno) {
      try source.withDescriptor { source throws(Errno) in
        try writing { () throws(Errno) in try target.cloneContent(of: source) }
      }
      return true
    } catch {
      if error.meansFullDisk || error.isFileSystemFailure || error.isDeferral { throw error }
      return false
    }
  }

  private mutating func copySegments(to target: borrowing Descriptor) throws(Errno) {
    var offset: Int64 = 0
    while offset < end, let data = try next(Descriptor.seekData, offset), data < end {
      let hole = min(end, try next(Descriptor.seekHole, data) ?? end)
      offset = try copy(data..<max(hole, data + 1), to: target)
      // The source has become shorter.
      if offset < hole { return }
    }
    try writing { () throws(Errno) in try target.resize(UInt64(end)) }
  }

  /// - Returns: nil behind the last data.
  private func next(_ whence: CInt, _ offset: Int64) throws(Errno) -> Int64? {
    do throws(Errno) { return try source.seek(offset, whence: whence) } catch {
      if error == .noSuchAddressOrDevice { return nil }
      // The file system does not know its holes.
      if error == .invalidArgument || error == .notSupported {
        return whence == Descriptor.seekHole ? end : offset
      }
      throw error
    }
  }

  /// Copies a range.
  /// - Returns: where it ended, since the source may have become shorter.
  private mutating func copy(_ range: Range<Int64>, to target: borrowing Descriptor) throws(Errno) -> Int64 {
    var offset = range.lowerBound
    while offset < range.upperBound {
      let count = try copyChunk(at: offset, Int(min(Self.chunk, range.upperBound - offset)), to: target)
      if count == 0 { break }
      try writeBack(at: offset, Int64(count), of: target)
      offset += Int64(count)
      progress?(count)
    }
    return offset
  }

  /// Starts to write a chunk to disk, and waits for a former one.
  private func writeBack(at offset: Int64, _ count: Int64, of target: borrowing Descriptor) throws(Errno) {
    if end < Self.behind { return }
    try upper.layer.gate.call { () throws(Errno) in
      target.writeBack(at: offset, count: count, waits: false)
      let former = offset - Self.behind
      if former >= 0 { target.writeBack(at: former, count: Self.chunk, waits: true) }
    }
  }

  private mutating func copyChunk(
    at offset: Int64, _ count: Int, to target: borrowing Descriptor
  ) throws(Errno) -> Int {
    if canCopyRanges {
      do throws(Errno) {
        let copied = try source.withDescriptor { source throws(Errno) in
          try writing { () throws(Errno) in try target.copyRange(of: source, at: offset, count: count) }
        }
        // Some file systems end early, such as procfs.
        if copied > 0 { return copied }
      } catch {
        if error.meansFullDisk || error.isFileSystemFailure || error.isDeferral { throw error }
      }
      canCopyRanges = false
    }
    return try readAndWrite(at: offset, min(count, 1 << 20), to: target)
  }

  private func readAndWrite(
    at offset: Int64, _ count: Int, to target: borrowing Descriptor
  ) throws(Errno) -> Int {
    try withUnsafeTemporaryBytes(count) { buffer throws(Errno) in
      let read = try source.read(into: buffer, at: offset)
      try writing { () throws(Errno) in
        try target.write(UnsafeRawBufferPointer(rebasing: buffer[..<read]), at: offset)
      }
      return read
    }
  }
}

extension Errno {
  /// ENOSPC, EDQUOT and EFBIG.
  public var meansFullDisk: Bool {
    self == .noSpace || self == .diskQuotaExceeded || self == .fileTooLarge
  }

  /// Whether the call was not made.
  fileprivate var isDeferral: Bool { self == .deferred || self == .skipped }
}
