import CIsal
import Posix

/// Decodes large deflated entries by ISA-L, which is more than twice as fast as zlib.
final class IsalDecoder: EntryDecoder, @unchecked Sendable {
  /// ISA-L, which is loaded when it is first needed; nil if it is not installed.
  private static let library: bundlefs_isal? = {
    var library = bundlefs_isal()
    return bundlefs_isal_load(&library) != 0 ? library : nil
  }()
  private static let stateSize = bundlefs_isal_state_size()

  private let library: bundlefs_isal
  private let state: UnsafeMutableRawBufferPointer
  private var buffers = bundlefs_isal_buffers()
  private var input: CompressedInput
  private var hasEnded = false

  override var verifiesChecksum: Bool { true }
  override var copyCost: Int { Self.stateSize }

  /// - Returns: nil if ISA-L is not installed.
  static func make(_ entry: CompressedEntry) throws(Errno) -> IsalDecoder? {
    guard let library else { return nil }
    return try IsalDecoder(entry, library)
  }

  private init(_ entry: CompressedEntry, _ library: bundlefs_isal) throws(Errno) {
    self.library = library
    state = .allocate(byteCount: Self.stateSize, alignment: 64)
    input = CompressedInput(entry)
    library.inflate_init(state.baseAddress)
    try super.init(entry)
  }

  private init(copying other: IsalDecoder) throws(Errno) {
    library = other.library
    state = .allocate(byteCount: Self.stateSize, alignment: 64)
    state.copyMemory(from: UnsafeRawBufferPointer(other.state))
    input = CompressedInput(other.entry, from: other.input.offset - UInt64(other.buffers.in_count))
    hasEnded = other.hasEnded
    try super.init(resuming: other)
  }

  deinit { state.deallocate() }

  override func copy() -> EntryDecoder? { try? IsalDecoder(copying: self) }

  override func decode(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    let room = UInt32(min(buffer.count, 1 << 30))
    buffers.out = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
    buffers.out_count = room
    while !hasEnded, buffers.out_count > 0 {
      if buffers.in_count == 0 { try readInput() }
      let before = (buffers.in_count, buffers.out_count)
      var library = library
      let result = bundlefs_isal_inflate(&library, state.baseAddress, &buffers)
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
