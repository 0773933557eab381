import CLibrary

/// A specifier of `printf(3)`, of which Swift's own types need no length.
struct FormatSpecifier: Hashable {
  enum Conversion: Hashable {
    case signed, unsigned, text
    /// `x`, `X` and `o`.
    case bits(UInt8)
    /// `f`, `e`, `g`, `a`, and in upper case.
    case floating(UInt8)
    case character

    /// nil for other bytes, such as `n`, which writes to memory.
    init?(_ byte: UInt8) {
      switch byte {
      case UInt8(ascii: "d"), UInt8(ascii: "i"), UInt8(ascii: "D"): self = .signed
      case UInt8(ascii: "u"), UInt8(ascii: "U"): self = .unsigned
      case UInt8(ascii: "x"), UInt8(ascii: "X"), UInt8(ascii: "o"): self = .bits(byte)
      case UInt8(ascii: "f"), UInt8(ascii: "F"), UInt8(ascii: "e"), UInt8(ascii: "E"), UInt8(ascii: "g"),
        UInt8(ascii: "G"), UInt8(ascii: "a"), UInt8(ascii: "A"):
        self = .floating(byte)
      case UInt8(ascii: "@"), UInt8(ascii: "s"), UInt8(ascii: "S"): self = .text
      case UInt8(ascii: "c"), UInt8(ascii: "C"): self = .character
      default: return nil
      }
    }
  }

  /// The number of the argument, from 1; nil for the next one.
  var position: Int?
  var flags = ""
  var width: Int?
  var precision: Int?
  var conversion = Conversion.text

  init(position: Int?) { self.position = position }

  /// Formats an argument. One of another type than the specifier's is converted, or else has its plain text.
  func text(of argument: FormatArgument) -> String {
    switch (conversion, argument) {
    case (.signed, .integer(let value)): formatted("lld", value)
    case (.signed, .unsigned(let value)), (.unsigned, .unsigned(let value)): formatted("llu", value)
    case (.unsigned, .integer(let value)): formatted("llu", UInt64(bitPattern: value))
    case (.bits(let byte), .integer(let value)):
      formatted("ll" + Self.letter(byte), UInt64(bitPattern: value))
    case (.bits(let byte), .unsigned(let value)): formatted("ll" + Self.letter(byte), value)
    case (.floating(let byte), .number(let value)): formatted(Self.letter(byte), value)
    case (.floating(let byte), .integer(let value)): formatted(Self.letter(byte), Double(value))
    case (.floating(let byte), .unsigned(let value)): formatted(Self.letter(byte), Double(value))
    case (.character, .integer(let value)): padded(Self.character(value) ?? argument.text)
    default: padded(argument.text)
    }
  }

  private static func letter(_ byte: UInt8) -> String { String(Unicode.Scalar(byte)) }

  private static func character(_ value: Int64) -> String? {
    UInt32(exactly: value).flatMap(Unicode.Scalar.init).map { String($0) }
  }

  private func formatted(_ conversion: String, _ argument: any CVarArg) -> String {
    let width = width.map { String($0) } ?? ""
    let format = "%\(flags)\(width)\(precision.map { ".\($0)" } ?? "")\(conversion)"
    // The longest number, 10^308 in full, has 309 digits; width and precision have three.
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 2048) { buffer in
      let count = withVaList([argument]) { vsnprintf(buffer.baseAddress, buffer.count, format, $0) }
      let bytes = UnsafeRawBufferPointer(buffer).prefix(max(0, min(Int(count), buffer.count - 1)))
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  /// A text of at least as many characters as the width, cut to the precision.
  private func padded(_ text: String) -> String {
    let text = precision.map { String(text.prefix($0)) } ?? text
    let padding = String(repeating: " ", count: max(0, (width ?? 0) - text.count))
    return flags.contains("-") ? text + padding : padding + text
  }
}
