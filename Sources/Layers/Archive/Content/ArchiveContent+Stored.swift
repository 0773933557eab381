import Posix

/// Stored entries, which are read directly from the archive's file.
extension ArchiveContent {
  /// - Returns: false if the whole entry must be verified first.
  func readStored(_ range: Range<UInt64>, into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Bool {
    let header = state.withLock { $0.header }
    // What is read with the lock held.
    header.prepare(content: size <= Self.verifiedAtOnce ? size : 0)
    do throws(Errno) {
      let (start, isCopied) = try state.withLock { state throws(Errno) in
        if let failure = state.failure { throw failure }
        return (try Self.start(&state), state.storage != nil || (isLarge && state.continuesFormer))
      }
      if isCopied { return false }
      try header.source.read(into: buffer, at: start + range.lowerBound)
      guard header.source.isUnchanged else { return false }
      return try state.withLock { state throws(Errno) in
        if state.header.source !== header.source { return false }
        try check(&state, start, upTo: range, UnsafeRawBufferPointer(buffer))
        if let failure = state.failure { throw failure }
        record(&state, range, isVerified: state.verifiedEnd == size)
        return true
      }
    } catch {
      if !header.source.isUnchanged { return false }
      throw error
    }
  }

  /// Adds the bytes read to the checksum, and those between the former end and the range.
  func check(
    _ state: inout State, _ start: UInt64, upTo range: Range<UInt64>, _ bytes: UnsafeRawBufferPointer
  ) throws(Errno) {
    if state.verifiedEnd == size || range.lowerBound > state.verifiedEnd + Self.verifiedAtOnce { return }
    if !state.node.hasChecksum { return }
    let goal = size <= Self.verifiedAtOnce ? size : range.upperBound
    while state.verifiedEnd < goal {
      if range.contains(state.verifiedEnd) {
        let rest = UnsafeRawBufferPointer(rebasing: bytes[Int(state.verifiedEnd - range.lowerBound)...])
        state.checksum = rest.crc32(after: state.checksum)
        state.verifiedEnd = range.upperBound
      } else {
        let end = state.verifiedEnd < range.lowerBound ? min(goal, range.lowerBound) : goal
        try readIntoChecksum(&state, start, upTo: end)
      }
    }
    guard state.verifiedEnd == size else { return }
    guard state.header.source.isUnchanged else { throw .ioError }
    if state.checksum == state.node.crc { setVerified(&state) } else { state.failure = .ioError }
  }

  /// Reads at most 128 KiB for the checksum alone.
  private func readIntoChecksum(_ state: inout State, _ start: UInt64, upTo end: UInt64) throws(Errno) {
    let count = Int(min(UInt64(128 << 10), end - state.verifiedEnd))
    try withUnsafeTemporaryBytes(count) { buffer throws(Errno) in
      try state.header.source.read(into: buffer, at: start + state.verifiedEnd)
      state.checksum = UnsafeRawBufferPointer(buffer).crc32(after: state.checksum)
    }
    state.verifiedEnd += UInt64(count)
  }

  /// Records that bytes are returned, which the kernel then caches.
  func record(_ state: inout State, _ range: Range<UInt64>, isVerified: Bool) {
    if !isLarge { return }
    let isFirst = !isVerified && state.unverifiedEnd == 0
    if !isVerified { state.unverifiedEnd = max(state.unverifiedEnd, range.upperBound) }
    // The inode number of a detached content is no longer in use. A content that continues the archive's former state
    // returns the bytes of that state until the present one is verified.
    if state.isDetached || state.continuesFormer || (state.isRecorded && !isFirst) { return }
    state.isRecorded = true
    served.insert(
      inode, from: state.header.source.generation,
      isVerified: isVerified && size <= largestContinued)
  }

  func setVerified(_ state: inout State) {
    if !state.node.hasChecksum { return }
    state.verifiedEnd = size
    state.continuesFormer = false
    state.unverifiedEnd = 0
    if isLarge, size <= largestContinued { served.setVerified(inode) }
  }

  static func compressedEntry(_ state: inout State) throws(Errno) -> CompressedEntry {
    let (header, node) = (state.header, state.node)
    let (start, beginning): (UInt64, CompressedBytes?) =
      if let start = state.start { (start, nil) } else { try header.read(with: node) }
    state.start = start
    return CompressedEntry(
      source: header.source, header: header.offset, start: start, node: node,
      container: header.container, beginning: beginning)
  }

  /// The offset of the first compressed byte.
  static func start(_ state: inout State) throws(Errno) -> UInt64 {
    if let start = state.start { return start }
    let start = try state.header.contentStart(of: state.node)
    state.start = start
    return start
  }
}
