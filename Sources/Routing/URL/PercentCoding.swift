/// Percent-encoding (RFC 3986, section 2.1).
public enum PercentCoding {
  static func hexDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// The byte that the sequence at an offset encodes; nil if there is no valid sequence.
  static func byte(at offset: Int, in text: Span<UInt8>) -> UInt8? {
    guard offset + 2 < text.count, let high = hexDigit(text[offset + 1]), let low = hexDigit(text[offset + 2])
    else { return nil }
    return high << 4 | low
  }

  /// Decodes a range in place; its sequences must be valid.
  /// - Returns: The decoded range, which has the same start.
  static func decode(_ text: inout [UInt8], _ range: ByteRange) -> ByteRange {
    var (from, to) = (Int(range.start), Int(range.start))
    while from < Int(range.end) {
      if text[from] == UInt8(ascii: "%"), let byte = byte(at: from, in: text.span) {
        text[to] = byte
        from += 3
      } else {
        text[to] = text[from]
        from += 1
      }
      to += 1
    }
    return ByteRange(Int(range.start)..<to)
  }

  static func encoded(_ byte: UInt8) -> [UInt8] {
    let digits = Array("0123456789ABCDEF".utf8)
    return [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
  }

  /// Encodes all bytes of a path but unreserved characters (RFC 3986, section 2.3) and slashes.
  public static func encoded(path: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    for byte in path {
      let isPlain = byte.isLetter || byte.isDigit || "-._~/".utf8.contains(byte)
      if isPlain { text.append(byte) } else { text += encoded(byte) }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Decodes a text, such as that of ``encoded(path:)``; nil if a `%` begins no valid sequence.
  public static func decoded(_ text: String) -> [UInt8]? {
    var bytes = Array(text.utf8)
    let isValid = bytes.indices.allSatisfy {
      bytes[$0] != UInt8(ascii: "%") || byte(at: $0, in: bytes.span) != nil
    }
    if !isValid { return nil }
    let decoded = decode(&bytes, ByteRange(bytes.indices))
    return Array(bytes[decoded.offsets])
  }
}

/// ASCII only.
extension UInt8 {
  @inline(__always)
  var isLetter: Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= self | 0x20 }

  @inline(__always)
  var isDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }
}

extension String {
  /// Decodes UTF-8 and percent-encodes each invalid byte. Applied to a URL, this yields an equivalent URL.
  public init(escaping bytes: [UInt8]) {
    if let text = String(validating: bytes, as: UTF8.self) {
      self = text
      return
    }
    var rest = bytes[...]
    var valid: [UInt8] = []
    while let range = firstInvalidUTF8(in: rest.span) {
      let bad = rest.startIndex + range.lowerBound..<rest.startIndex + range.upperBound
      valid += rest[..<bad.lowerBound]
      for byte in rest[bad] { valid += PercentCoding.encoded(byte) }
      rest = rest[bad.upperBound...]
    }
    self = String(decoding: valid + rest, as: UTF8.self)
  }
}

/// The offsets of the first ill-formed UTF-8 sequence.
func firstInvalidUTF8(in bytes: Span<UInt8>) -> Range<Int>? {
  do throws(UTF8.ValidationError) {
    _ = try UTF8Span(validating: bytes)
    return nil
  } catch { return error.byteOffsets }
}
