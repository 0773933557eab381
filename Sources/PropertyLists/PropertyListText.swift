/// A property list that is text, in UTF-8 without a byte order mark.
public struct PropertyListText: Sendable {
  private enum Encoding {
    case utf8, utf16(isBigEndian: Bool), utf32(isBigEndian: Bool), latin1

    var name: String {
      switch self {
      case .utf8: "UTF-8"
      case .utf16: "UTF-16"
      case .utf32: "UTF-32"
      case .latin1: "ISO-8859-1"
      }
    }
  }

  /// The text; of a malformed one, what precedes the first malformed character.
  public let utf8: [UInt8]
  /// Whether the text is cut off by a malformed character.
  public let isMalformed: Bool
  private let encoding: Encoding
  /// The byte order mark.
  private let mark: ArraySlice<UInt8>

  /// Why the text is malformed, for users.
  public var malformation: String { "a character that is not valid \(encoding.name)" }

  /// Decodes a file by its byte order mark, the NULs beside its first character, or its XML declaration; others are
  /// UTF-8.
  /// - Returns: nil if an XML declaration has an unknown encoding.
  public init?(_ content: [UInt8]) {
    guard let (encoding, markLength) = Self.byteOrderMark(content) ?? Self.declared(content).map({ ($0, 0) })
    else { return nil }
    self.encoding = encoding
    mark = content[..<markLength]
    let text = content[markLength...]
    switch encoding {
    case .utf8:
      let length = Self.validLength(text)
      isMalformed = length < text.count
      utf8 = markLength == 0 && !isMalformed ? content : Array(text.prefix(length))
    case .latin1: (utf8, isMalformed) = Self.transcoded(text.map { UInt32($0) }, from: UTF32.self)
    case .utf16(let isBigEndian):
      let (units, isOdd): ([UInt16], Bool) = Self.units(text, isBigEndian)
      let (decoded, isMalformed) = Self.transcoded(units, from: UTF16.self)
      (utf8, self.isMalformed) = (decoded, isMalformed || isOdd)
    case .utf32(let isBigEndian):
      let (units, isOdd): ([UInt32], Bool) = Self.units(text, isBigEndian)
      let (decoded, isMalformed) = Self.transcoded(units, from: UTF32.self)
      (utf8, self.isMalformed) = (decoded, isMalformed || isOdd)
    }
  }

  /// Encodes another text as this one, with a byte order mark if this one has it; in UTF-8 if this one is in ISO-8859-1.
  public func encode(_ utf8: [UInt8]) -> [UInt8] {
    let text = String(decoding: utf8, as: UTF8.self)
    switch encoding {
    case .utf8, .latin1: return mark + utf8
    case .utf16(let isBigEndian): return mark + Self.bytes(of: text.utf16, isBigEndian)
    case .utf32(let isBigEndian):
      return mark + Self.bytes(of: text.unicodeScalars.lazy.map(\.value), isBigEndian)
    }
  }

  private static func bytes<Unit: FixedWidthInteger>(
    of units: some Sequence<Unit>, _ isBigEndian: Bool
  ) -> [UInt8] {
    var bytes: [UInt8] = []
    for unit in units {
      withUnsafeBytes(of: isBigEndian ? unit.bigEndian : unit.littleEndian) { bytes += $0 }
    }
    return bytes
  }

  /// Whether a file is a text in UTF-16 or UTF-32.
  /// - Parameter start: its first four bytes, or all if it has fewer.
  public static func hasWideCharacters(_ start: [UInt8]) -> Bool {
    switch byteOrderMark(start)?.0 {
    case .utf16, .utf32: true
    default: false
    }
  }

  /// The number of bytes that precede the first malformed character.
  private static func validLength(_ text: ArraySlice<UInt8>) -> Int {
    do throws(UTF8.ValidationError) {
      _ = try UTF8Span(validating: text.span)
      return text.count
    } catch {
      return error.byteOffsets.lowerBound
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
    case [true, false, true, false], [true, false, true, true]: return (.utf16(isBigEndian: false), 0)
    case [false, true, false, true], [false, true, true, true]: return (.utf16(isBigEndian: true), 0)
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
    switch String(decoding: name, as: UTF8.self).lowercased() {
    // A document in these would not begin with the bytes of `<?xml`.
    case "utf-8", "utf8", "us-ascii", "ascii", "utf-16", "utf-32": return .utf8
    case "iso-8859-1", "latin1": return .latin1
    default: return nil
    }
  }

  /// - Returns: the whole units, and whether there are bytes beyond them.
  private static func units<Unit: FixedWidthInteger>(
    _ text: ArraySlice<UInt8>, _ isBigEndian: Bool
  ) -> ([Unit], Bool) {
    let size = MemoryLayout<Unit>.size
    let whole = text.prefix(text.count - text.count % size)
    let units = whole.withUnsafeBytes { bytes in
      stride(from: 0, to: bytes.count, by: size).map { offset in
        let unit = bytes.loadUnaligned(fromByteOffset: offset, as: Unit.self)
        return isBigEndian ? Unit(bigEndian: unit) : Unit(littleEndian: unit)
      }
    }
    return (units, whole.count < text.count)
  }

  /// - Returns: what precedes the first malformed character, and whether there is one.
  private static func transcoded<Source: UnicodeCodec>(
    _ units: [Source.CodeUnit], from encoding: Source.Type
  ) -> ([UInt8], Bool) {
    var text: [UInt8] = []
    text.reserveCapacity(units.count)
    let isMalformed = transcode(
      units.makeIterator(), from: encoding, to: UTF8.self, stoppingOnError: true
    ) { text.append($0) }
    return (text, isMalformed)
  }
}
