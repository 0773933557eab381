import Posix

/// The central directory of an archive (APPNOTE.TXT, section 4.3).
struct CentralDirectory {
  /// Offset in the file.
  let start: UInt64
  let size: UInt64
  /// The bytes before the archive, to be added to its offsets.
  let prefixLength: UInt64
  /// The declared number of entries, a mere estimate.
  let declaredCount: UInt64

  static let largest: UInt64 = 4 << 30

  private static let endSignature: UInt32 = 0x0605_4B50
  private static let locatorSignature: UInt32 = 0x0706_4B50
  private static let zip64EndSignature: UInt32 = 0x0606_4B50
  private static let endSize = 22
  /// How many bytes before the end of the file are searched for the end record: a comment has up to 64 KiB, and other
  /// bytes may follow it. unzip(1) searches at least 66,000 bytes.
  private static let searched: UInt64 = 72 << 10
  private static let locatorSize = 20
  private static let zip64EndSize = 56

  static func find(in source: ArchiveSource) throws(ArchiveError) -> CentralDirectory {
    let count = Int(min(source.size, searched))
    guard count >= endSize else { throw .noArchive }
    let tail = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
    defer { tail.deallocate() }
    let start = source.size - UInt64(count)
    do throws(Errno) { try source.read(into: tail, at: start) } catch {
      throw error == .ioError ? .changing : .unreadable(error)
    }
    return try find(in: UnsafeRawBufferPointer(tail), at: start, source)
  }

  /// Prefers the last end record whose comment ends with the file; otherwise takes the last one of an archive that
  /// begins with the file, or follows a program that extracts it. In a file that begins with an entry, an archive that
  /// begins later is nested in a truncated one.
  private static func find(
    in tail: UnsafeRawBufferPointer, at start: UInt64, _ source: ArchiveSource
  ) throws(ArchiveError) -> CentralDirectory {
    do throws(ArchiveError) { return try find(in: tail, at: start, source, isExact: true) } catch {
      do throws(ArchiveError) { return try find(in: tail, at: start, source, isExact: false) } catch let other
      {
        throw error == .noArchive ? other : error
      }
    }
  }

  private static func find(
    in tail: UnsafeRawBufferPointer, at start: UInt64, _ source: ArchiveSource, isExact: Bool
  ) throws(ArchiveError) -> CentralDirectory {
    var fault = ArchiveError.noArchive
    var offset = tail.count - endSize
    while offset >= 0 {
      defer { offset -= 1 }
      guard tail[offset] == 0x50, tail.number(at: offset, as: UInt32.self) == endSignature else { continue }
      let comment = Int(tail.number(at: offset + 20, as: UInt16.self))
      let end = offset + endSize + comment
      guard isExact ? end == tail.count : end < tail.count else { continue }
      do throws(ArchiveError) {
        let found = try read(tail, offset, start + UInt64(offset), source)
        if isExact || found.prefixLength == 0 { return found }
        if try withBytes(4, at: 0, source, { $0.number(at: 0, as: UInt32.self) != 0x0403_4B50 }) ?? false {
          return found
        }
      } catch {
        if fault == .noArchive { fault = error }
      }
    }
    throw fault
  }

  private static func read(
    _ tail: UnsafeRawBufferPointer, _ record: Int, _ end: UInt64, _ source: ArchiveSource
  ) throws(ArchiveError) -> CentralDirectory {
    var disk = UInt32(tail.number(at: record + 4, as: UInt16.self))
    var count = UInt64(tail.number(at: record + 10, as: UInt16.self))
    var size = UInt64(tail.number(at: record + 12, as: UInt32.self))
    var offset = UInt64(tail.number(at: record + 16, as: UInt32.self))
    var end = end
    if record >= locatorSize, tail.number(at: record - locatorSize, as: UInt32.self) == locatorSignature {
      let declared = tail.number(at: record - locatorSize + 8, as: UInt64.self)
      if let zip64 = try zip64End(declared, before: end - UInt64(locatorSize), source) {
        (count, size, offset, end) = (zip64.count, zip64.size, zip64.offset, zip64.end)
        if disk == 0xFFFF { disk = zip64.disk }
      }
    }
    if disk != 0 { throw .part }
    // Even with bytes before the archive, the central directory ends at the end record.
    guard size <= end else { throw .damaged("its table of contents is larger than the file") }
    var start = end - size
    if start != offset, try !isRecord(at: start, size, source) || offset > start {
      // There is a gap between the two.
      guard offset <= end, size <= end - offset, try isRecord(at: offset, size, source) else {
        throw .damaged("its table of contents is not where it should be")
      }
      start = offset
    }
    guard size <= largest else { throw .damaged("its table of contents is absurdly large") }
    return CentralDirectory(start: start, size: size, prefixLength: start - offset, declaredCount: count)
  }

  /// Whether a central directory can begin at an offset.
  private static func isRecord(
    at offset: UInt64, _ size: UInt64, _ source: ArchiveSource
  ) throws(ArchiveError) -> Bool {
    if size == 0 { return true }
    return try withBytes(4, at: offset, source) {
      $0.number(at: 0, as: UInt32.self) == ZipRecord.signature
    } ?? false
  }

  private typealias Zip64End = (disk: UInt32, count: UInt64, size: UInt64, offset: UInt64, end: UInt64)

  /// The zip64 end record, right before its locator or at the declared offset; nil if neither has it.
  private static func zip64End(
    _ declared: UInt64, before locator: UInt64, _ source: ArchiveSource
  ) throws(ArchiveError) -> Zip64End? {
    let right = locator >= UInt64(zip64EndSize) ? locator - UInt64(zip64EndSize) : declared
    for offset in [right, declared] {
      let found = try withBytes(zip64EndSize, at: offset, source) { bytes -> Zip64End? in
        guard bytes.number(at: 0, as: UInt32.self) == zip64EndSignature else { return nil }
        return (
          bytes.number(at: 16, as: UInt32.self), bytes.number(at: 32, as: UInt64.self),
          bytes.number(at: 40, as: UInt64.self),
          bytes.number(at: 48, as: UInt64.self), offset
        )
      }
      if let found, let zip64 = found { return zip64 }
    }
    return nil
  }

  /// - Returns: nil if the range exceeds the file.
  private static func withBytes<Result>(
    _ count: Int, at offset: UInt64, _ source: ArchiveSource, _ body: (UnsafeRawBufferPointer) -> Result
  ) throws(ArchiveError) -> Result? {
    guard offset <= source.size, source.size - offset >= UInt64(count) else { return nil }
    do throws(Errno) {
      return try withUnsafeTemporaryBytes(count) { buffer throws(Errno) in
        try source.read(into: buffer, at: offset)
        return body(UnsafeRawBufferPointer(buffer))
      }
    } catch { throw .unreadable(error) }
  }
}

extension CentralDirectory {
  /// - Parameter progress: called with the bytes read and the total.
  func forEachRecord(
    in source: ArchiveSource, progress: (UInt64, UInt64) -> Void, _ body: (ZipRecord) -> Void
  ) throws(ArchiveError) {
    // The longest record has 46 bytes and three fields of 65,535.
    let window = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
    defer { window.deallocate() }
    var (done, filled, offset) = (UInt64(0), 0, 0)
    while true {
      let rest = UnsafeRawBufferPointer(rebasing: window[offset..<filled])
      if let record = try ZipRecord(rest, isLast: done == size) {
        body(record)
        offset += record.length
        continue
      }
      if done == size { return }
      window.copyBytes(from: rest)
      let count = Int(min(UInt64(window.count - rest.count), size - done))
      if count == 0 { throw .damaged("its table of contents has no entry where one should be") }
      let free = UnsafeMutableRawBufferPointer(rebasing: window[rest.count..<rest.count + count])
      do throws(Errno) { try source.read(into: free, at: start + done) } catch {
        throw error == .ioError ? .changing : .unreadable(error)
      }
      (done, filled, offset) = (done + UInt64(count), rest.count + count, 0)
      progress(done, size)
    }
  }
}
