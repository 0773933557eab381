/// Writes JSON (RFC 8259), member by member.
public struct JSONWriter: Sendable {
  /// The text so far, in UTF-8.
  public private(set) var bytes: [UInt8] = []
  /// Whether no member or element precedes the next one.
  private var isFirst = true

  /// An empty text.
  /// - Parameter capacity: the bytes that it will probably have.
  public init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

  /// The text of an object whose members the body writes.
  public static func object(_ members: (inout JSONWriter) -> Void) -> String {
    var json = JSONWriter()
    json.object(members)
    return json.text
  }

  /// A string literal, quoted and escaped.
  public static func quoted(_ string: String) -> String {
    var json = JSONWriter()
    json.string(string)
    return json.text
  }

  /// The text so far.
  public var text: String { String(decoding: bytes, as: UTF8.self) }

  /// Writes an object whose members the body writes.
  public mutating func object(_ members: (inout JSONWriter) -> Void) {
    begin("{")
    members(&self)
    end("}")
  }

  /// Writes an array; the body writes one value for each element.
  /// - Parameter onLines: whether each element is on an indented line of its own.
  public mutating func array<Elements: Sequence>(
    _ elements: Elements, onLines: Bool = false, _ value: (inout JSONWriter, Elements.Element) -> Void
  ) {
    begin("[")
    for element in elements {
      separate()
      if onLines { bytes += "\n  ".utf8 }
      value(&self, element)
    }
    if onLines, !isFirst { bytes += "\n".utf8 }
    end("]")
  }

  /// Writes an array of strings.
  public mutating func strings(_ strings: [String]) { array(strings) { $0.string($1) } }

  /// Begins a member, whose value the caller writes next.
  public mutating func name(_ name: String) {
    separate()
    string(name)
    bytes.append(UInt8(ascii: ":"))
  }

  /// Writes a member that is a string, or `null`.
  public mutating func member(_ name: String, _ value: String?) {
    self.name(name)
    if let value { string(value) } else { null() }
  }

  /// Writes a member that is an integer, or `null`.
  public mutating func member(_ name: String, _ value: (some BinaryInteger)?) {
    self.name(name)
    if let value { integer(value) } else { null() }
  }

  /// Writes a member that is `true` or `false`.
  public mutating func member(_ name: String, _ value: Bool) {
    self.name(name)
    bytes += (value ? "true" : "false").utf8
  }

  /// Writes a string, escaping quotation marks, backslashes and control characters: also DEL, C1 and those that
  /// JSON allows but that would control a terminal.
  public mutating func string(_ string: String) {
    var string = string
    if string.withUTF8({ plain($0) }) { return }
    bytes.append(UInt8(ascii: "\""))
    if string.utf8.allSatisfy({ $0 < 0x7F }) {
      ascii(string.utf8)
    } else {
      unicode(string.unicodeScalars)
    }
    bytes.append(UInt8(ascii: "\""))
  }

  /// Writes a string whose bytes that are not UTF-8 are percent-encoded.
  mutating func string(escaping text: [UInt8]) {
    if text.withUnsafeBufferPointer({ plain($0) }) { return }
    string(String(escaping: text))
  }

  /// Writes a string of bytes that all stand for themselves.
  /// - Returns: false, without writing, if one does not.
  private mutating func plain(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    for byte in text where !Self.isPlain(byte) { return false }
    bytes.append(UInt8(ascii: "\""))
    bytes.append(contentsOf: text)
    bytes.append(UInt8(ascii: "\""))
    return true
  }

  /// Whether a byte stands for itself in a string.
  @inline(__always)
  private static func isPlain(_ byte: UInt8) -> Bool {
    byte >= 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
  }

  private mutating func unicode(_ scalars: String.UnicodeScalarView) {
    for scalar in scalars {
      if scalar.value >= 0x7F, scalar.isControl {
        let digits = String(scalar.value, radix: 16)
        bytes += ("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8
      } else {
        ascii(String(scalar).utf8)
      }
    }
  }

  private mutating func ascii(_ text: some Sequence<UInt8>) {
    for byte in text {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
      case UInt8(ascii: "\n"): bytes += "\\n".utf8
      case UInt8(ascii: "\r"): bytes += "\\r".utf8
      case UInt8(ascii: "\t"): bytes += "\\t".utf8
      case 0..<0x20: bytes += ((byte < 0x10 ? "\\u000" : "\\u00") + String(byte, radix: 16)).utf8
      default: bytes.append(byte)
      }
    }
  }

  /// Writes an integer.
  public mutating func integer(_ value: some BinaryInteger) {
    guard let number = Int64(exactly: value) else {
      bytes += String(value).utf8
      return
    }
    if number < 0 { bytes.append(UInt8(ascii: "-")) }
    let start = bytes.count
    var rest = number.magnitude
    repeat {
      bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
      rest /= 10
    } while rest > 0
    bytes[start...].reverse()
  }

  /// Writes a finite number as the shortest text that reads back as the same value, with a point or an
  /// exponent, so that it is not mistaken for an integer.
  public mutating func number(_ value: Double) {
    precondition(value.isFinite, "JSON has no such number")
    bytes += value.description.utf8
  }

  /// Writes `null`.
  public mutating func null() { bytes += "null".utf8 }

  /// Writes a value that another writer holds.
  public mutating func append(_ value: JSONWriter) { bytes += value.bytes }

  private mutating func begin(_ bracket: Unicode.Scalar) {
    bytes.append(UInt8(ascii: bracket))
    isFirst = true
  }

  private mutating func end(_ bracket: Unicode.Scalar) {
    bytes.append(UInt8(ascii: bracket))
    isFirst = false
  }

  private mutating func separate() {
    if !isFirst { bytes.append(UInt8(ascii: ",")) }
    isFirst = false
  }
}
