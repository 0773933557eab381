import Posix

/// Unpacking, a piece at a time.
extension ArchiveContent {
  /// - Returns: false where it is to wait for the archive to be read anew.
  func step(_ buffer: UnsafeMutableRawBufferPointer) -> Bool {
    let source = state.withLock { ($0.unpacked ?? $0.place).source }
    do throws(Errno) { try unpack(buffer, from: source) } catch { return fail(error, source) }
    return true
  }

  func unpack(
    _ buffer: UnsafeMutableRawBufferPointer, from source: ArchiveSource
  ) throws(Errno) {
    guard let (inflater, storage) = try prepare(source) else { return }
    // Who wants the first bytes gets them soon.
    let most = max(Self.firstStep, Int(clamping: inflater.position))
    let wanted = min(buffer.count, most, Int(clamping: size - inflater.position) + 1)
    let count = try inflater.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]))
    let end = inflater.position
    if count > 0 {
      try storage.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: end - UInt64(count))
    }
    let isUnchanged = source.isUnchanged
    let (bytes, dropped) = state.withLock { state -> (Int, Range<UInt64>) in
      // Another archive has come.
      guard state.inflater === inflater, state.storage === storage else { return (0, 0..<0) }
      if !isUnchanged { state.isUncertain = true }
      if count == 0 {
        complete(&state)
      } else if !state.isUncertain, end < size {
        state.present = state.present.lowerBound..<end
      }
      let dropped = narrow(&state, storage)
      return (Self.weight(of: state, written: end), dropped)
    }
    if !dropped.isEmpty { storage.drop(dropped) }
    cache.account(self, bytes: bytes, isFile: storage.isFile)
  }

  func complete(_ state: inout State) {
    state.isComplete = true
    state.inflater = nil
    state.unpacked = nil
    state.present = state.present.lowerBound..<size
    // What was handed out before the file was written over was not compared.
    if !state.isUncertain { trust(&state) }
  }

  /// - Returns: nil where another archive has come.
  func prepare(_ source: ArchiveSource) throws(Errno) -> (EntryDecoder, ContentStorage)? {
    let (inflater, storage) = state.withLock { ($0.inflater, $0.storage) }
    if let inflater, let storage { return (inflater, storage) }
    let begun = try state.withLock { state throws(Errno) -> (EntryLocation, UInt64, ArchiveNode)? in
      guard state.place.source === source else { return nil }
      let wanted = state.wanted
      Self.reset(&state)
      state.wanted = max(state.wanted, wanted)
      return (state.place, try Self.start(&state), state.node)
    }
    guard let (place, start, node) = begun else { return nil }
    let fresh = try EntryDecoder(PackedEntry(node, in: source, at: start))
    let room = try ContentStorage(size: size, mostAtOnce: mostAtOnce, mayUseFile: cache.mayUseFile)
    return state.withLock { state in
      guard state.place.source === source else { return nil }
      (state.inflater, state.storage, state.unpacked) = (fresh, room, place)
      return (fresh, room)
    }
  }
}
