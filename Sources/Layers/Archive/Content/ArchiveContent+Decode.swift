import Posix

extension ArchiveContent {
  /// - Returns: false if it waits for a reload of the archive.
  func step(_ buffer: UnsafeMutableRawBufferPointer) -> Bool {
    let source = state.withLock { ($0.decodedHeader ?? $0.header).source }
    do throws(Errno) { try decodeChunk(buffer, from: source) } catch { return fail(error, source) }
    return true
  }

  func decodeChunk(_ buffer: UnsafeMutableRawBufferPointer, from source: ArchiveSource) throws(Errno) {
    guard let (decoder, storage) = try prepare(source) else { return }
    decoder.goal = state.withLock { skipGoal($0, decoder.position) }
    guard try decoder.advance() else { return }
    if try skipZeros(decoder, storage) { return }
    // A small first chunk of a large entry, so that the first bytes are available soon.
    let most = isLarge ? max(Self.firstStep, Int(clamping: decoder.position)) : buffer.count
    let chunk = min(buffer.count, most, Int(clamping: size - decoder.position + 1))
    let count = try decoder.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<chunk]))
    let end = decoder.position
    cache.decoded.add(UInt64(count))
    if count > 0 {
      let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      // Until they are known to be of the archive's present state, readers must not see them in an earlier range.
      state.withLock { $0.available.removeEarlier(in: end - UInt64(count)..<end) }
      guard try write(bytes, at: end - UInt64(count), to: storage) else { return }
    }
    var isVerified = count == 0
    // All bytes are decoded: this verifies them.
    if end == size, count > 0 { isVerified = try decoder.read(into: buffer) == 0 }
    let isUnchanged = (isVerified && wasUnread) || source.isUnchanged
    try state.withLock { [isVerified] state throws(Errno) in
      // The content was moved to another archive.
      guard state.decoder === decoder, state.storage === storage else { return }
      if !isUnchanged, !state.wasOverwritten {
        // Only what is decoded from the beginning can be verified.
        if decoder.resumption > 0 { return restart(&state) }
        try setOverwritten(&state)
      }
      if isVerified {
        complete(&state)
      } else if !state.wasOverwritten, !state.continuesFormer, isLarge {
        state.available.extend(to: end)
        state.index.add(decoder, limit: cache.budget / 8)
      }
    }
    account(storage, written: end)
  }

  /// Whether no byte was returned, so that the checksum proves all that readers get.
  private var wasUnread: Bool { !isLarge && !state.withLock { $0.continuesFormer } }

  /// Up to where no reader waits for a byte, so that a hole before it need not be filled with zeros.
  private func skipGoal(_ state: State, _ position: UInt64) -> UInt64 {
    guard isLarge, state.storage?.isFile == true, !state.wasOverwritten, !state.continuesFormer else {
      return 0
    }
    let wanted = state.waiters.lazy.map(\.range).filter { $0.upperBound > position }
    return (wanted.map(\.lowerBound).min() ?? 0) & ~0xFFFF
  }

  /// Begins another range behind a hole.
  /// - Returns: false if the decoder is not before a hole.
  private func skipZeros(_ decoder: EntryDecoder, _ storage: ContentStorage) throws(Errno) -> Bool {
    if try decoder.skipZeros() == 0 { return false }
    state.withLock { state in
      // Unless the content was moved to another archive.
      if state.decoder === decoder, state.storage === storage { state.available.begin(at: decoder.position) }
    }
    return true
  }

  /// - Throws: ESTALE if unverified bytes were returned that the decoder did not yield before; EIO, which waits for a
  ///   reload, if the entry is too large to be kept until it is verified.
  private func setOverwritten(_ state: inout State) throws(Errno) {
    if state.available.end < state.unverifiedEnd { throw .staleFileHandle }
    if size > residentLimit { throw .ioError }
    state.wasOverwritten = true
  }

  /// - Returns: false if the disk cannot hold them; then decoding begins again, into memory.
  private func write(
    _ bytes: UnsafeRawBufferPointer, at offset: UInt64, to storage: ContentStorage
  ) throws(Errno) -> Bool {
    do throws(Errno) {
      try storage.write(bytes, at: offset)
      return true
    } catch {
      // Files on disk are smaller than those in memory can be: 16 TiB on ext4.
      guard error == .noSpace || error == .fileTooLarge, storage.isOnDisk else { throw error }
      state.withLock { state in
        state.avoidsDisk = true
        if state.storage === storage { reset(&state) }
      }
      return false
    }
  }

  func complete(_ state: inout State) {
    state.isComplete = true
    state.decoder = nil
    state.decodedHeader = nil
    state.available.extend(to: size)
    // What was returned before the file was overwritten is of this decoder, and so verified with the rest.
    let continuesFormer = state.continuesFormer && state.wasOverwritten
    setVerified(&state)
    state.continuesFormer = continuesFormer
  }

  /// - Returns: nil if the content was moved to another archive.
  func prepare(_ source: ArchiveSource) throws(Errno) -> (EntryDecoder, ContentStorage)? {
    let (decoder, storage) = state.withLock { ($0.decoder, $0.storage) }
    if let decoder, let storage { return (decoder, storage) }
    // With the lock held, the server is not waited for.
    state.withLock { $0.header }.prepare(content: min(size, LocalHeader.smallSize))
    let started = try state.withLock { state throws(Errno) -> Start? in
      guard state.header.source === source else { return nil }
      let target = state.target
      reset(&state)
      state.target = max(state.target, target)
      return Start(
        header: state.header, entry: try Self.compressedEntry(&state), former: resumption(state),
        avoidsDisk: state.avoidsDisk)
    }
    guard let started else { return nil }
    let newStorage = try ContentStorage(
      size: size, residentLimit: residentLimit, mayUseFile: cache.mayUseFile,
      directories: started.avoidsDisk ? [] : ContentStorage.directories)
    let resumed = newStorage.isFile ? started.former?.copy() : nil
    let newDecoder =
      if let resumed { resumed } else { try EntryDecoder.make(started.entry, passwords: cache.passwords) }
    return state.withLock { state in
      guard state.header.source === source else { return nil }
      (state.decoder, state.storage, state.decodedHeader) = (newDecoder, newStorage, started.header)
      state.available.begin(at: newDecoder.position)
      return (newDecoder, newStorage)
    }
  }

  /// What a decoder is created from.
  private struct Start {
    let header: LocalHeader
    let entry: CompressedEntry
    /// The decoder to resume; nil to decode from the beginning.
    let former: EntryDecoder?
    let avoidsDisk: Bool
  }
}
