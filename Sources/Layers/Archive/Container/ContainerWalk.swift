#if Archives
import Posix

/// The readers that go through a container in order, to reach the entries that are wanted.
///
/// An entry is reached by the reader that is nearest before it; if there is none, by one that begins anew. Small entries
/// on the way go to the decoders that want them, and otherwise into the cache, so that reading all entries in whatever
/// order takes about as many passes as the cache has to be filled.
///
/// Lock order: this lock, then that of a content, then that of the cache.
final class ContainerWalk: Sendable {
  private struct State {
    var readers: [ContainerReader] = []
    var limits = Limits()
    /// The decoders of entries that are wanted, by number.
    var wanted: [UInt64: WeakDecoder] = [:]
    var purgeCount = 64
    var passes = 0
  }

  private struct WeakDecoder {
    weak var decoder: SequentialDecoder?
  }

  /// What the layer's cache allows.
  struct Limits: Sendable {
    /// The most readers: each has a decompressor, of which some take 100 MB.
    var readers = 2
    /// The size of the largest entries that are put into the cache on the way.
    var kept: UInt64 = 0
    /// Puts the content of a node into the cache.
    var keep: @Sendable (UInt32, [UInt8]) -> Void = { _, _ in }

    /// - Parameter budget: of the cache, in bytes.
    init(budget: Int = 0, keep: @escaping @Sendable (UInt32, [UInt8]) -> Void = { _, _ in }) {
      readers = max(2, min(4, budget >> 26))
      kept = min(1 << 20, UInt64(budget / 16))
      self.keep = keep
    }
  }

  private let source: ArchiveSource
  private let format: ContainerFormat
  /// By number of an entry, its node in the index; 0 if it has none.
  private let nodes: [UInt32]
  private let state = Locked(order: 25, State())
  /// What one step decodes at most, in bytes and entries: a few milliseconds of work.
  private static let stepSize: UInt64 = 1 << 20
  private static let stepEntries = 256

  init(_ source: ArchiveSource, _ format: ContainerFormat, nodes: [UInt32]) {
    self.source = source
    self.format = format
    self.nodes = nodes
  }

  /// How often a reader began anew.
  var passes: Int { state.withLock { $0.passes } }

  func setLimits(_ limits: Limits) { state.withLock { $0.limits = limits } }

  func withLock<Result>(_ body: () -> Result) -> Result { state.withLock { _ in body() } }

  func insert(_ decoder: SequentialDecoder) {
    state.withLock { state in
      if state.wanted.count >= state.purgeCount {
        state.wanted = state.wanted.filter { $0.value.decoder != nil }
        state.purgeCount = max(64, state.wanted.count * 2)
      }
      state.wanted[decoder.ordinal] = WeakDecoder(decoder: decoder)
    }
  }

  /// Decodes a few milliseconds further in the direction of what a decoder wants.
  /// - Returns: whether the decoder has bytes, or needs none.
  /// - Throws: EIO; ENOMEM.
  func advance(_ decoder: SequentialDecoder) throws(Errno) -> Bool {
    try state.withLock { state throws(Errno) in
      if decoder.isReady { return true }
      let index = try nearestReader(&state, decoder.ordinal, decoder.wantedOffset)
      let reader = state.readers[index]
      do throws(Errno) { try step(reader, decoder, state) } catch {
        state.readers.removeAll { $0 === reader }
        throw error
      }
      // The most recently used one is the last.
      state.readers.append(state.readers.remove(at: index))
      return decoder.isReady
    }
  }

  /// The index of the reader that is nearest before an offset in an entry. If all are behind it, the one that was least
  /// recently used begins anew.
  private func nearestReader(
    _ state: inout State, _ ordinal: UInt64, _ offset: UInt64
  ) throws(Errno) -> Int {
    let wanted = (Int64(ordinal), offset)
    let nearest = state.readers.indices.filter { place(state.readers[$0]) <= wanted }
      .max { place(state.readers[$0]) < place(state.readers[$1]) }
    if let nearest { return nearest }
    if state.readers.count >= state.limits.readers { state.readers.removeFirst() }
    state.readers.append(try ContainerReader(source, format))
    state.passes += 1
    return state.readers.count - 1
  }

  private func place(_ reader: ContainerReader) -> (Int64, UInt64) { (reader.ordinal, reader.offset) }

  private func step(
    _ reader: ContainerReader, _ decoder: SequentialDecoder, _ state: State
  ) throws(Errno) {
    var (bytes, entries) = (Self.stepSize, Self.stepEntries)
    while reader.ordinal < Int64(decoder.ordinal), bytes > 0, entries > 0 {
      guard try finishEntry(reader, &bytes) else { return }
      guard try reader.nextHeader() else { throw .ioError }
      entries -= 1
      bytes -= min(bytes, try pass(reader, decoder, state))
    }
    guard reader.ordinal == Int64(decoder.ordinal), !decoder.isReady else { return }
    while reader.offset < decoder.wantedOffset {
      if bytes == 0 { return }
      // An entry that ends before what the index has: the file is another one.
      guard let (data, count) = try reader.nextRun(atMost: decoder.wantedOffset - reader.offset)
      else { throw .ioError }
      // Holes cost nothing.
      if data != nil { bytes -= min(bytes, count) }
    }
    if decoder.wantedOffset < decoder.goal {
      let hole = try reader.skipHole(atMost: decoder.goal - decoder.wantedOffset)
      if hole > 0 { return decoder.deliverHole(hole) }
    }
    let bytesLeft = decoder.entry.node.size - decoder.wantedOffset
    decoder.deliver(try read(reader, Int(min(UInt64(ArchiveContent.chunkSize), bytesLeft))))
    if !decoder.isReady { throw .ioError }
  }

  /// Skips the rest of an entry, which libarchive would do in one go.
  /// - Returns: whether the budget was enough.
  private func finishEntry(_ reader: ContainerReader, _ bytes: inout UInt64) throws(Errno) -> Bool {
    // A part that is not compressed, before one that is.
    if reader.format.isPlain, reader.format.kind == .cpio { return true }
    while bytes > 0 {
      guard let (data, count) = try reader.nextRun(atMost: UInt64(Int64.max)) else { return true }
      // Holes cost nothing.
      if data != nil { bytes -= min(bytes, count) }
    }
    return false
  }

  /// Decodes an entry on the way if it is small, and passes it on.
  /// - Returns: how many bytes were decoded.
  private func pass(
    _ reader: ContainerReader, _ decoder: SequentialDecoder, _ state: State
  ) throws(Errno) -> UInt64 {
    let ordinal = UInt64(reader.ordinal)
    guard ordinal < decoder.ordinal,
      let node = Int(exactly: ordinal).flatMap({ nodes.indices.contains($0) ? nodes[$0] : nil }),
      node != 0
    else { return 0 }
    let size = reader.header.size
    let other = state.wanted[ordinal]?.decoder
    let isWanted = other?.wantsAll == true && size <= ArchiveContent.smallSize
    guard size > 0, isWanted || size <= state.limits.kept else { return 0 }
    let content = try read(reader, Int(size))
    if content.count != size { return UInt64(content.count) }
    if isWanted { other?.deliver(content) } else { state.limits.keep(node, content) }
    return size
  }

  private func read(_ reader: ContainerReader, _ count: Int) throws(Errno) -> [UInt8] {
    var failure: Errno?
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      do throws(Errno) {
        filled = try reader.read(into: UnsafeMutableRawBufferPointer(buffer))
      } catch { failure = error }
    }
    if let failure { throw failure }
    return bytes
  }
}
#endif
