import Posix

/// Decoding, one chunk at a time.
extension ArchiveContent {
  /// - Returns: false if it waits for a reload of the archive.
  func step(_ buffer: UnsafeMutableRawBufferPointer) -> Bool {
    let source = state.withLock { ($0.decodedHeader ?? $0.header).source }
    do throws(Errno) { try unpack(buffer, from: source) } catch { return fail(error, source) }
    return true
  }

  func unpack(
    _ buffer: UnsafeMutableRawBufferPointer, from source: ArchiveSource
  ) throws(Errno) {
    guard let (decoder, storage) = try prepare(source) else { return }
    // A small first chunk, so that the first bytes are available soon.
    let most = max(Self.firstStep, Int(clamping: decoder.position))
    let wanted = min(buffer.count, most, Int(clamping: size - decoder.position) + 1)
    let count = try decoder.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]))
    let end = decoder.position
    if count > 0 {
      try storage.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: end - UInt64(count))
    }
    let isUnchanged = source.isUnchanged
    let (bytes, dropped) = state.withLock { state -> (Int, Range<UInt64>) in
      // The content was moved to another archive.
      guard state.decoder === decoder, state.storage === storage else { return (0, 0..<0) }
      if !isUnchanged { state.wasOverwritten = true }
      if count == 0 {
        complete(&state)
      } else if !state.wasOverwritten, end < size {
        state.available = state.available.lowerBound..<end
      }
      let dropped = trim(&state, storage)
      return (Self.cost(of: state, written: end), dropped)
    }
    if !dropped.isEmpty { storage.drop(dropped) }
    cache.account(self, bytes: bytes, isFile: storage.isFile)
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
    let begun = try state.withLock { state throws(Errno) -> (LocalHeader, UInt64, ArchiveNode)? in
      guard state.header.source === source else { return nil }
      let wanted = state.target
      Self.reset(&state)
      state.target = max(state.target, wanted)
      return (state.header, try Self.start(&state), state.node)
    }
    guard let (place, start, node) = begun else { return nil }
    let fresh = try EntryDecoder(PackedEntry(node, in: source, at: start))
    let room = try ContentStorage(size: size, residentLimit: residentLimit, mayUseFile: cache.mayUseFile)
    return state.withLock { state in
      guard state.header.source === source else { return nil }
      (state.decoder, state.storage, state.decodedHeader) = (fresh, room, place)
      return (fresh, room)
    }
  }
}
