/// A JSON object (RFC 8259) as it is written, member by member, on one line.
public struct JSONText: Sendable {
  /// What has been written.
  public private(set) var bytes: [UInt8] = []
  private var isFirst = true

  /// Nothing yet.
  public init() {}

  /// Writes an object; its members are what the body writes.
  public mutating func object(_ body: (inout JSONText) -> Void) {
    begin("{")
    body(&self)
    end("}")
  }

  /// Writes an array of texts.
  public mutating func texts(_ texts: [String]) {
    begin("[")
    for text in texts {
      divide()
      self.text(text)
    }
    end("]")
  }

  /// Begins a member; its value is to be written next.
  public mutating func name(_ name: String) {
    divide()
    text(name)
    bytes.append(UInt8(ascii: ":"))
  }

  /// Writes a text, escaped where it must be.
  public mutating func text(_ text: String) {
    bytes.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
      case UInt8(ascii: "\n"): bytes += "\\n".utf8
      case UInt8(ascii: "\r"): bytes += "\\r".utf8
      case UInt8(ascii: "\t"): bytes += "\\t".utf8
      case 0..<0x20: bytes += ((byte < 0x10 ? "\\u000" : "\\u00") + String(byte, radix: 16)).utf8
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }

  /// A text by itself, in its quotation marks and escaped where it must be.
  public static func quoted(_ text: String) -> String {
    var json = JSONText()
    json.text(text)
    return String(decoding: json.bytes, as: UTF8.self)
  }

  /// Writes an integer.
  public mutating func integer(_ value: some BinaryInteger) { bytes += String(value).utf8 }

  /// Writes a finite number: the shortest text that reads back as the same one, with a point or an exponent,
  /// so that the text shows that it is no integer.
  public mutating func number(_ value: Double) {
    precondition(value.isFinite, "JSON has no such number")
    bytes += value.description.utf8
  }

  /// Writes `null`.
  public mutating func null() { bytes += "null".utf8 }

  private mutating func begin(_ mark: Unicode.Scalar) {
    bytes.append(UInt8(ascii: mark))
    isFirst = true
  }

  private mutating func end(_ mark: Unicode.Scalar) {
    bytes.append(UInt8(ascii: mark))
    isFirst = false
  }

  private mutating func divide() {
    if !isFirst { bytes.append(UInt8(ascii: ",")) }
    isFirst = false
  }
}
