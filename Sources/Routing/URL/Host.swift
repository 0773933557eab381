/// Hosts (RFC 3986, section 3.2.2).
enum Host {
  /// Where the host ends with which a part of the text begins: at the colon of the port, or with the part.
  static func end(in text: Span<UInt8>, _ part: Range<Int>) throws(RoutingError) -> Int {
    if !part.isEmpty, text[part.lowerBound] == UInt8(ascii: "[") {
      return try addressEnd(in: text, part)
    }
    for place in part {
      switch text[place] {
      case UInt8(ascii: ":"): return place
      case UInt8(ascii: "@"): throw .malformed("an @ in the user or the host is written %40", at: place)
      case UInt8(ascii: "["), UInt8(ascii: "]"):
        throw .malformed("brackets enclose a whole IPv6 address and nothing else", at: place)
      default: break
      }
    }
    return part.upperBound
  }

  /// The end of an address in brackets.
  private static func addressEnd(in text: Span<UInt8>, _ part: Range<Int>) throws(RoutingError) -> Int {
    guard let close = part.first(where: { text[$0] == UInt8(ascii: "]") }) else {
      throw .malformed("the address has no closing bracket", at: part.lowerBound)
    }
    let address = text.extracting(part.lowerBound + 1..<close)
    guard isVersion6(address) || isFuture(address) else {
      throw .malformed("this is no IPv6 address", at: part.lowerBound + 1)
    }
    let end = close + 1
    guard end == part.upperBound || text[end] == UInt8(ascii: ":") else {
      throw .malformed("after an address comes its port or the path", at: end)
    }
    return end
  }

  /// Eight groups of up to four hexadecimal digits; `::` stands for one or more groups of zeros, once; an
  /// IPv4 address may stand in place of the last two.
  private static func isVersion6(_ address: Span<UInt8>) -> Bool {
    var (groups, place, hasGap) = (0, 0, false)
    while place < address.count {
      if address[place] == UInt8(ascii: ":") {
        if place + 1 < address.count, address[place + 1] == UInt8(ascii: ":"), !hasGap {
          hasGap = true
          place += 2
          continue
        }
        // A colon divides two groups.
        guard place > 0, address[place - 1] != UInt8(ascii: ":"), place + 1 < address.count else {
          return false
        }
        place += 1
        continue
      }
      var end = place
      while end < address.count, PercentCoding.digit(address[end]) != nil { end += 1 }
      if end < address.count, address[end] == UInt8(ascii: ".") {
        groups += 2
        guard isVersion4(address.extracting(place...)) else { return false }
        break
      }
      guard end > place, end - place <= 4 else { return false }
      groups += 1
      place = end
    }
    return hasGap ? groups <= 7 : groups == 8
  }

  /// Four numbers up to 255, divided by points, without leading zeros.
  private static func isVersion4(_ address: Span<UInt8>) -> Bool {
    var (numbers, place) = (0, 0)
    while place < address.count {
      var (value, digits) = (0, 0)
      while place < address.count, digits < 4, address[place] != UInt8(ascii: ".") {
        guard address[place] >= UInt8(ascii: "0"), address[place] <= UInt8(ascii: "9") else { return false }
        guard digits == 0 || value > 0 else { return false }
        value = value * 10 + Int(address[place] - UInt8(ascii: "0"))
        digits += 1
        place += 1
      }
      guard digits > 0, value <= 255 else { return false }
      numbers += 1
      if place == address.count { break }
      guard address[place] == UInt8(ascii: "."), place + 1 < address.count else { return false }
      place += 1
    }
    return numbers == 4
  }

  /// An address of a version that is yet to come: `v`, the version, a point, and some characters.
  private static func isFuture(_ address: Span<UInt8>) -> Bool {
    guard let first = address.first, first | 0x20 == UInt8(ascii: "v") else { return false }
    var place = 1
    while place < address.count, PercentCoding.digit(address[place]) != nil { place += 1 }
    return place > 1 && place + 1 < address.count && address[place] == UInt8(ascii: ".")
  }
}

extension Span {
  /// The first element; nil if there is none.
  fileprivate var first: Element? { isEmpty ? nil : self[0] }
}
