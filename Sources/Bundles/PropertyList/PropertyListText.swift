/// The encodings of property lists that are text.
enum PropertyListText {
  private enum Encoding {
    case utf8, utf16(isBigEndian: Bool), utf32(isBigEndian: Bool), latin1
  }

  /// The text in UTF-8 without a byte order mark; nil if it is malformed, or its encoding unknown.
  static func utf8(_ content: [UInt8]) -> [UInt8]? {
    guard let (encoding, markLength) = byteOrderMark(content) ?? declared(content).map({ ($0, 0) }) else {
      return nil
    }
    let text = content[markLength...]
    switch encoding {
    case .utf8:
      return (try? UTF8Span(validating: text.span)) == nil ? nil : markLength == 0 ? content : Array(text)
    case .latin1: return transcoded(text.map { UInt32($0) }, from: UTF32.self)
    case .utf16(let isBigEndian):
      guard let units: [UInt16] = units(text, isBigEndian) else { return nil }
      return transcoded(units, from: UTF16.self)
    case .utf32(let isBigEndian):
      guard let units: [UInt32] = units(text, isBigEndian) else { return nil }
      return transcoded(units, from: UTF32.self)
    }
  }

  /// The encoding by the byte order mark or, without one, by the NULs beside the first character.
  private static func byteOrderMark(_ content: [UInt8]) -> (Encoding, length: Int)? {
    let start = Array(content.prefix(4))
    if start.starts(with: [0xEF, 0xBB, 0xBF]) { return (.utf8, 3) }
    if start == [0xFF, 0xFE, 0, 0] { return (.utf32(isBigEndian: false), 4) }
    if start == [0, 0, 0xFE, 0xFF] { return (.utf32(isBigEndian: true), 4) }
    if start.starts(with: [0xFF, 0xFE]) { return (.utf16(isBigEndian: false), 2) }
    if start.starts(with: [0xFE, 0xFF]) { return (.utf16(isBigEndian: true), 2) }
    guard start.count == 4 else { return nil }
    switch start.map({ $0 != 0 }) {
    case [true, false, false, false]: return (.utf32(isBigEndian: false), 0)
    case [false, false, false, true]: return (.utf32(isBigEndian: true), 0)
    case [true, false, true, false]: return (.utf16(isBigEndian: false), 0)
    case [false, true, false, true]: return (.utf16(isBigEndian: true), 0)
    default: return nil
    }
  }

  /// The encoding in the XML declaration; UTF-8 without one, nil if it is unknown.
  private static func declared(_ content: [UInt8]) -> Encoding? {
    var scanner = ByteScanner(Array(content.prefix(256)))
    scanner.skipWhitespace()
    guard scanner.take("<?xml"), let end = scanner.text.firstIndex(of: UInt8(ascii: ">")),
      scanner.skip(past: "encoding"), scanner.offset < end
    else { return .utf8 }
    scanner.skip { $0 == UInt8(ascii: "=") || $0 <= 0x20 }
    guard let quote = scanner.pop(), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
      return .utf8
    }
    let name = scanner.text[scanner.offset...].prefix { $0 != quote }
    switch String(decoding: lowercased(Array(name)), as: UTF8.self) {
    // A document in these would not begin with the bytes of `<?xml`.
    case "utf-8", "utf8", "us-ascii", "ascii", "utf-16", "utf-32": return .utf8
    case "iso-8859-1", "latin1": return .latin1
    default: return nil
    }
  }

  private static func units<Unit: FixedWidthInteger>(_ text: ArraySlice<UInt8>, _ isBigEndian: Bool)
    -> [Unit]?
  {
    let size = MemoryLayout<Unit>.size
    guard text.count % size == 0 else { return nil }
    return text.withUnsafeBytes { bytes in
      stride(from: 0, to: bytes.count, by: size).map { offset in
        let unit = bytes.loadUnaligned(fromByteOffset: offset, as: Unit.self)
        return isBigEndian ? Unit(bigEndian: unit) : Unit(littleEndian: unit)
      }
    }
  }

  private static func transcoded<Source: UnicodeCodec>(
    _ units: [Source.CodeUnit], from encoding: Source.Type
  ) -> [UInt8]? {
    var text: [UInt8] = []
    text.reserveCapacity(units.count)
    let isMalformed = transcode(
      units.makeIterator(), from: encoding, to: UTF8.self, stoppingOnError: true
    ) { text.append($0) }
    return isMalformed ? nil : text
  }
}
