extension UnsafeRawBufferPointer {
  /// Little-endian.
  @inline(__always)
  func number<Number: FixedWidthInteger>(at offset: Int, as type: Number.Type) -> Number {
    Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
  }
}
