/// The predefined entities of XML, and character references.
enum XMLEntity {
  /// Parses what follows `&`.
  static func parse(_ scanner: inout ByteScanner) throws(MalformedPropertyList) -> Unicode.Scalar {
    if scanner.take("lt;") { return "<" }
    if scanner.take("gt;") { return ">" }
    if scanner.take("amp;") { return "&" }
    if scanner.take("quot;") { return "\"" }
    if scanner.take("apos;") { return "'" }
    guard scanner.take("#") else { throw MalformedPropertyList("an unknown entity") }
    let radix: UInt32 = scanner.take("x") ? 16 : 10
    var value: UInt32 = 0
    while let byte = scanner.pop() {
      if byte == UInt8(ascii: ";"), let character = Unicode.Scalar(value) { return character }
      guard let digit = OpenStepEscape.hexDigit(byte), digit < radix else { break }
      value = value * radix + digit
      if value > 0x10FFFF { break }
    }
    throw MalformedPropertyList("an unknown entity")
  }
}
