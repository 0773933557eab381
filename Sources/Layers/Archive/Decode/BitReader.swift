import Posix

/// Reads the compressed bytes of an entry bit by bit, the lowest first.
struct BitReader: ~Copyable {
  private var input: CompressedInput
  private var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
  private var next = 0
  private var bits: UInt64 = 0
  private var count = 0
  private var failure: Errno?

  init(_ entry: CompressedEntry) { input = CompressedInput(entry) }

  /// The next bits, with zeros after the end.
  @inline(__always)
  mutating func peek(_ number: Int) -> Int {
    if count < number { fill() }
    return Int(bits & (1 << UInt64(number) - 1))
  }

  /// - Throws: EIO at the end.
  @inline(__always)
  mutating func skip(_ number: Int) throws(Errno) {
    guard number <= count else { throw failure ?? .ioError }
    bits >>= UInt64(number)
    count -= number
  }

  @inline(__always)
  mutating func take(_ number: Int) throws(Errno) -> UInt32 {
    let value = peek(number)
    try skip(number)
    return UInt32(truncatingIfNeeded: value)
  }

  mutating func alignToByte() {
    bits >>= UInt64(count & 7)
    count &= ~7
  }

  private mutating func fill() {
    while count <= 56 {
      if next == bytes.count, !readMore() { return }
      bits |= UInt64(bytes[next]) << UInt64(count)
      next += 1
      count += 8
    }
  }

  private mutating func readMore() -> Bool {
    do throws(Errno) { (bytes, next) = (try input.next(), 0) } catch {
      failure = error
      return false
    }
    return !bytes.isEmpty
  }
}
