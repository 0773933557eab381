import CLibrary

/// Hosts (RFC 3986, section 3.2.2).
enum Host {
  /// The end of the host at the start of a range: the offset of the port's colon, or the end of the range.
  static func end(in text: Span<UInt8>, _ range: Range<Int>) throws(RoutingError) -> Int {
    if !range.isEmpty, text[range.lowerBound] == UInt8(ascii: "[") {
      return try addressEnd(in: text, range)
    }
    for offset in range {
      switch text[offset] {
      case UInt8(ascii: ":"): return offset
      case UInt8(ascii: "@"): throw .malformed("an @ in the user or the host is written %40", at: offset)
      case UInt8(ascii: "["), UInt8(ascii: "]"):
        throw .malformed("brackets enclose a whole IPv6 address and nothing else", at: offset)
      default: break
      }
    }
    return range.upperBound
  }

  private static func addressEnd(in text: Span<UInt8>, _ range: Range<Int>) throws(RoutingError) -> Int {
    guard let close = range.first(where: { text[$0] == UInt8(ascii: "]") }) else {
      throw .malformed("the address has no closing bracket", at: range.lowerBound)
    }
    let address = text.extracting(range.lowerBound + 1..<close)
    guard isIPv6(address) || isIPvFuture(address) else {
      throw .malformed("this is not an IPv6 address", at: range.lowerBound + 1)
    }
    let end = close + 1
    guard end == range.upperBound || text[end] == UInt8(ascii: ":") else {
      throw .malformed("an address is followed by a port or the path", at: end)
    }
    return end
  }

  private static func isIPv6(_ address: Span<UInt8>) -> Bool {
    // INET6_ADDRSTRLEN counts the terminating NUL.
    guard address.count < INET6_ADDRSTRLEN else { return false }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { text in
      for index in 0..<address.count { text[index] = CChar(bitPattern: address[index]) }
      text[address.count] = 0
      var parsed = in6_addr()
      return inet_pton(AF_INET6, text.baseAddress, &parsed) == 1
    }
  }

  /// Whether this is RFC 3986's `IPvFuture`: `v`, a version in hexadecimal, a point, and more characters.
  private static func isIPvFuture(_ address: Span<UInt8>) -> Bool {
    guard !address.isEmpty, address[0] | 0x20 == UInt8(ascii: "v") else { return false }
    var offset = 1
    while offset < address.count, PercentCoding.hexDigit(address[offset]) != nil { offset += 1 }
    return offset > 1 && offset + 1 < address.count && address[offset] == UInt8(ascii: ".")
  }
}
