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
    // A small first chunk, so that the first bytes are available soon.
    let most = max(Self.firstStep, Int(clamping: decoder.position))
    let chunk = min(buffer.count, most, Int(clamping: size - decoder.position + 1))
    let count = try decoder.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<chunk]))
    let end = decoder.position
    if count > 0 {
      let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      guard try write(bytes, at: end - UInt64(count), to: storage) else { return }
    }
    let isUnchanged = source.isUnchanged
    let (bytes, discarded) = state.withLock { state -> (Int, Range<UInt64>) in
      // The content was moved to another archive.
      guard state.decoder === decoder, state.storage === storage else { return (0, 0..<0) }
      if !isUnchanged { state.wasOverwritten = true }
      if count == 0 {
        complete(&state)
      } else if !state.wasOverwritten, end < size {
        state.available = state.available.lowerBound..<end
      }
      let discarded = trim(&state, storage)
      return (Self.cost(of: state, written: end), discarded)
    }
    if !discarded.isEmpty { storage.discard(discarded) }
    cache.account(self, bytes: bytes, isFile: storage.isFile)
  }

  /// - Returns: false if the disk is full; then decoding begins again, into memory.
  private func write(
    _ bytes: UnsafeRawBufferPointer, at offset: UInt64, to storage: ContentStorage
  ) throws(Errno) -> Bool {
    do throws(Errno) {
      try storage.write(bytes, at: offset)
      return true
    } catch {
      guard error == .noSpace, storage.isOnDisk else { throw error }
      state.withLock { state in
        state.avoidsDisk = true
        if state.storage === storage { Self.reset(&state) }
      }
      return false
    }
  }

  func complete(_ state: inout State) {
    state.isComplete = true
    state.decoder = nil
    state.decodedHeader = nil
    state.available = state.available.lowerBound..<size
    // What was returned before the file was overwritten remains unverified.
    if !state.wasOverwritten { markVerified(&state) }
  }

  /// - Returns: nil if the content was moved to another archive.
  func prepare(_ source: ArchiveSource) throws(Errno) -> (EntryDecoder, ContentStorage)? {
    let (decoder, storage) = state.withLock { ($0.decoder, $0.storage) }
    if let decoder, let storage { return (decoder, storage) }
    let started = try state.withLock { state throws(Errno) -> (LocalHeader, UInt64, ArchiveNode, Bool)? in
      guard state.header.source === source else { return nil }
      let target = state.target
      Self.reset(&state)
      state.target = max(state.target, target)
      return (state.header, try Self.start(&state), state.node, state.avoidsDisk)
    }
    guard let (header, start, node, avoidsDisk) = started else { return nil }
    let newDecoder = try EntryDecoder(CompressedEntry(source: source, start: start, node: node))
    let newStorage = try ContentStorage(
      size: size, residentLimit: residentLimit, mayUseFile: cache.mayUseFile,
      directories: avoidsDisk ? [] : ContentStorage.directories)
    return state.withLock { state in
      guard state.header.source === source else { return nil }
      (state.decoder, state.storage, state.decodedHeader) = (newDecoder, newStorage, header)
      return (newDecoder, newStorage)
    }
  }
}
