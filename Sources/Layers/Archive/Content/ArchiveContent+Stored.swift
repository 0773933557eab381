import Posix

/// Stored entries, which are read where the archive has them.
extension ArchiveContent {
  /// - Returns: false where the file was written over, so that its bytes have to be checked as a whole first.
  func readStored(
    _ range: Range<UInt64>, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Bool {
    let place = state.withLock { $0.header }
    do throws(Errno) {
      let (start, isCopied) = try state.withLock { state throws(Errno) in
        if let failure = state.failure { throw failure }
        return (try Self.start(&state), state.storage != nil)
      }
      if isCopied { return false }
      try place.source.read(into: buffer, at: start + range.lowerBound)
      guard place.source.isUnchanged else { return false }
      return try state.withLock { state throws(Errno) in
        if state.header.source !== place.source { return false }
        try check(&state, start, upTo: range, UnsafeRawBufferPointer(buffer))
        if let failure = state.failure { throw failure }
        if state.verifiedEnd < size { markUnverified(&state) }
        return true
      }
    } catch {
      if !place.source.isUnchanged { return false }
      throw error
    }
  }

  /// Takes what was read into the checksum, with what lies between.
  func check(
    _ state: inout State, _ start: UInt64, upTo range: Range<UInt64>, _ bytes: UnsafeRawBufferPointer
  ) throws(Errno) {
    if state.verifiedEnd == size || range.lowerBound > state.verifiedEnd + Self.verifiedAtOnce { return }
    let goal = size <= Self.verifiedAtOnce ? size : range.upperBound
    while state.verifiedEnd < goal {
      if range.contains(state.verifiedEnd) {
        let rest = UnsafeRawBufferPointer(rebasing: bytes[Int(state.verifiedEnd - range.lowerBound)...])
        state.checksum = rest.crc32(after: state.checksum)
        state.verifiedEnd = range.upperBound
        continue
      }
      let end = state.verifiedEnd < range.lowerBound ? min(goal, range.lowerBound) : goal
      let count = Int(min(UInt64(128 << 10), end - state.verifiedEnd))
      try withUnsafeTemporaryBytes(count) { buffer throws(Errno) in
        try state.header.source.read(into: buffer, at: start + state.verifiedEnd)
        state.checksum = UnsafeRawBufferPointer(buffer).crc32(after: state.checksum)
      }
      state.verifiedEnd += UInt64(count)
    }
    guard state.verifiedEnd == size, state.header.source.isUnchanged else { return }
    if state.checksum == state.node.crc { markVerified(&state) } else { state.failure = .ioError }
  }

  /// Notes that something is handed out that may be wrong: the kernel keeps it.
  func markUnverified(_ state: inout State) {
    if state.isUnverified { return }
    state.isUnverified = true
    unverified.insert(inode)
  }

  /// Notes that what was handed out is right.
  func markVerified(_ state: inout State) {
    if !state.isUnverified { return }
    state.isUnverified = false
    _ = unverified.remove(inode)
  }

  /// The offset of the first packed byte: the entry's own header tells.
  /// - Throws: EIO where there is no header, or the bytes would not all be there; EACCES for an encrypted one.
  static func start(_ state: inout State) throws(Errno) -> UInt64 {
    if let start = state.start { return start }
    let place = state.header
    guard place.header < place.end, place.end - place.header >= 30 else { throw .ioError }
    let (length, flags) = try withUnsafeTemporaryBytes(30) { header throws(Errno) -> (UInt64, UInt16) in
      try place.source.read(into: header, at: place.header)
      let header = UnsafeRawBufferPointer(header)
      guard header.number(at: 0, as: UInt32.self) == 0x0403_4B50 else { throw .ioError }
      let name = header.number(at: 26, as: UInt16.self)
      return (
        30 + UInt64(name) + UInt64(header.number(at: 28, as: UInt16.self)),
        header.number(at: 6, as: UInt16.self)
      )
    }
    if flags & 1 != 0 { throw .permissionDenied }
    let start = place.header + length
    guard start <= place.end, place.end - start >= state.node.compressedSize else { throw .ioError }
    state.start = start
    return start
  }
}
