#if Archives
import CIsal
import Posix

/// Decodes Deflate by ISA-L, which is about twice as fast as zlib.
final class IsalDecoder: EntryDecoder, @unchecked Sendable {
  private let library: bundlefs_isal
  private let state: IsalState
  private var buffers = bundlefs_isal_buffers()
  private var input: CompressedInput
  private var hasEnded = false

  override var verifiesChecksum: Bool { true }
  override var copyCost: Int { IsalState.size }

  /// - Returns: nil if ISA-L is not installed, or not worth loading yet.
  static func make(_ entry: CompressedEntry) throws(Errno) -> IsalDecoder? {
    guard let library = Isal.library(for: Int(clamping: entry.node.size)) else { return nil }
    return try IsalDecoder(entry, library)
  }

  private init(_ entry: CompressedEntry, _ library: bundlefs_isal) throws(Errno) {
    self.library = library
    state = IsalState()
    input = CompressedInput(entry)
    library.inflate_init(state.bytes.baseAddress)
    try super.init(entry)
  }

  private init(copying other: IsalDecoder) throws(Errno) {
    library = other.library
    state = IsalState()
    state.bytes.copyMemory(from: UnsafeRawBufferPointer(other.state.bytes))
    input = CompressedInput(other.entry, from: other.input.offset - UInt64(other.buffers.in_count))
    hasEnded = other.hasEnded
    try super.init(resuming: other)
  }

  override func copy() -> EntryDecoder? { try? IsalDecoder(copying: self) }

  override func decode(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    let room = UInt32(min(buffer.count, 1 << 30))
    buffers.out = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
    buffers.out_count = room
    while !hasEnded, buffers.out_count > 0 {
      if buffers.in_count == 0 { try readInput() }
      let before = (buffers.in_count, buffers.out_count)
      var library = library
      let result = bundlefs_isal_inflate(&library, state.bytes.baseAddress, &buffers)
      hasEnded = result == 1
      let isStuck = (buffers.in_count, buffers.out_count) == before
      if result < 0 || (isStuck && !hasEnded && (input.isAtEnd || buffers.in_count > 0)) { throw .ioError }
    }
    return Int(room - buffers.out_count)
  }

  private func readInput() throws(Errno) {
    let bytes = try input.next()
    buffers.in = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
    buffers.in_count = UInt32(bytes.count)
  }
}

/// The memory of a decoder.
private final class IsalState: Sendable {
  static let size = bundlefs_isal_state_size()
  /// Memory for the next decoders: after most small entries, the allocator would return it to the kernel.
  private static let spare = Locked<[UnsafeMutableRawBufferPointer]>([])
  private static let mostSpare = 4

  nonisolated(unsafe) let bytes: UnsafeMutableRawBufferPointer

  init() {
    bytes = Self.spare.withLock { $0.popLast() } ?? .allocate(byteCount: Self.size, alignment: 64)
  }

  deinit {
    let isSpare = Self.spare.withLock { spare in
      if spare.count == Self.mostSpare { return false }
      spare.append(bytes)
      return true
    }
    if !isSpare { bytes.deallocate() }
  }
}
#endif
