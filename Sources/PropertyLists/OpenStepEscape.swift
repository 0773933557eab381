/// The escape sequences of the OpenStep format.
public enum OpenStepEscape {
  /// A character, or a byte that stands for itself and may be the first of a character.
  public enum Escaped: Sendable {
    /// A character.
    case character(Unicode.Scalar)
    /// A byte of a text in UTF-8.
    case byte(UInt8)

    /// Appends the character or the byte to a text.
    public func append(to text: inout [UInt8]) {
      switch self {
      case .byte(let byte): text.append(byte)
      case .character(let character):
        if let encoded = UTF8.encode(character) { text.append(contentsOf: encoded) }
      }
    }
  }

  /// Parses what follows a backslash.
  /// - Parameter allowsLowercase: whether `\u` begins a code unit as `\U` does; otherwise it stands for `u`.
  /// - Returns: nil at the end of the text.
  public static func parse(_ scanner: inout ByteScanner, allowsLowercase: Bool = false) -> Escaped? {
    guard let byte = scanner.pop() else { return nil }
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "7"): return octal(byte, &scanner)
    case UInt8(ascii: "U"): return .character(utf16(&scanner, allowsLowercase))
    case UInt8(ascii: "u") where allowsLowercase: return .character(utf16(&scanner, true))
    case UInt8(ascii: "a"): return .byte(7)
    case UInt8(ascii: "b"): return .byte(8)
    case UInt8(ascii: "t"): return .byte(9)
    case UInt8(ascii: "n"): return .byte(10)
    case UInt8(ascii: "v"): return .byte(11)
    case UInt8(ascii: "f"): return .byte(12)
    case UInt8(ascii: "r"): return .byte(13)
    default: return .byte(byte)
    }
  }

  /// Up to three octal digits, for a character of the NeXTSTEP encoding.
  private static func octal(_ first: UInt8, _ scanner: inout ByteScanner) -> Escaped {
    var value = Int(first - UInt8(ascii: "0"))
    for _ in 0..<2 {
      guard let digit = scanner.next, (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(digit) else { break }
      _ = scanner.pop()
      value = value << 3 | Int(digit - UInt8(ascii: "0"))
    }
    value &= 0xFF
    return value < 0x80 ? .byte(UInt8(value)) : .character(upperHalf[value - 0x80])
  }

  /// Up to four hexadecimal digits after `\U`: a UTF-16 code unit. A high surrogate takes the next one with it; one
  /// that is alone becomes U+FFFD.
  private static func utf16(_ scanner: inout ByteScanner, _ allowsLowercase: Bool) -> Unicode.Scalar {
    let first = unit(&scanner)
    if let character = Unicode.Scalar(first) { return character }
    var following = scanner
    guard first < 0xDC00, following.take("\\U") || allowsLowercase && following.take("\\u") else {
      return "\u{FFFD}"
    }
    let second = unit(&following)
    guard (0xDC00..<0xE000).contains(second) else { return "\u{FFFD}" }
    scanner = following
    return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00)) ?? "\u{FFFD}"
  }

  private static func unit(_ scanner: inout ByteScanner) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = scanner.next.flatMap(hexDigit) else { break }
      _ = scanner.pop()
      value = value << 4 | digit
    }
    return value
  }

  /// The value of a hexadecimal digit; nil for other bytes.
  public static func hexDigit(_ byte: UInt8) -> UInt32? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt32(byte - UInt8(ascii: "a")) + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt32(byte - UInt8(ascii: "A")) + 10
    default: nil
    }
  }

  /// The upper half of the NeXTSTEP encoding.
  private static let upperHalf = Array(
    ("\u{A0}ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖÙÚÛÜÝÞµ×÷©¡¢£⁄¥ƒ§¤’“«‹›ﬁﬂ®–†‡·¦¶•‚„”»…‰¬¿¹ˋ´ˆ˜¯˘˙¨²˚¸³˝˛ˇ"
      + "—±¼½¾àáâãäåçèéêëìÆíªîïðñŁØŒºòóôõöæùúûıüýłøœßþÿ\u{FFFD}\u{FFFD}").unicodeScalars)
}
