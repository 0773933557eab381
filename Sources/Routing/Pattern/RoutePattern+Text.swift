/// What a text is written to, byte by byte.
private protocol ByteSink {
  mutating func write(_ byte: UInt8)
  mutating func write(_ text: String)
}

private struct ByteCounter: ByteSink {
  var count = 0

  mutating func write(_ byte: UInt8) { count += 1 }
  mutating func write(_ text: String) { count += text.utf8.count }
}

extension [UInt8]: ByteSink {
  fileprivate mutating func write(_ byte: UInt8) { append(byte) }
  fileprivate mutating func write(_ text: String) { append(contentsOf: text.utf8) }
}

extension RoutePattern {
  /// The canonical text, which has no whitespace and parses as an equal pattern.
  public var description: String {
    var text: [UInt8] = []
    append(to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// The bytes of ``description``.
  var size: Int {
    var counter = ByteCounter()
    write(to: &counter)
    return counter.count
  }

  /// Appends ``description``.
  func append(to text: inout [UInt8]) { write(to: &text) }

  private func write(to sink: inout some ByteSink) {
    if let scheme {
      sink.write(scheme)
      sink.write("://")
    }
    for (index, component) in components.enumerated() {
      if index > 0 { sink.write(UInt8(ascii: "/")) }
      Self.write(component.type, component.isOptional, key: component.key, to: &sink)
    }
    if let tail {
      if !components.isEmpty { sink.write(UInt8(ascii: "/")) }
      sink.write(isTailOptional ? "**:" : "*:")
      sink.write(tail)
    }
    for (index, parameter) in parameters.enumerated() {
      sink.write(index == 0 ? UInt8(ascii: "?") : UInt8(ascii: "&"))
      Self.write(parameter.name, inName: true, to: &sink)
      sink.write(UInt8(ascii: "="))
      Self.write(
        parameter.type, parameter.isOptional, isArray: parameter.isArray, key: parameter.key, to: &sink)
    }
  }

  private static func write(
    _ type: ValueType, _ isOptional: Bool, isArray: Bool = false, key: String, to sink: inout some ByteSink
  ) {
    sink.write(letter(type))
    if isOptional { sink.write(UInt8(ascii: "?")) }
    if isArray { sink.write("[]") }
    sink.write(UInt8(ascii: ":"))
    if case .literal(let literal) = type {
      sink.write(UInt8(ascii: "("))
      write(literal, inName: false, to: &sink)
      sink.write(UInt8(ascii: ")"))
    }
    sink.write(key)
  }

  private static func letter(_ type: ValueType) -> UInt8 {
    switch type {
    case .text: UInt8(ascii: "s")
    case .integer: UInt8(ascii: "i")
    case .number: UInt8(ascii: "f")
    case .literal: UInt8(ascii: "l")
    }
  }

  /// Percent-encodes delimiters, spaces and control characters.
  private static func write(_ text: [UInt8], inName: Bool, to sink: inout some ByteSink) {
    for byte in text {
      if isEncoded(byte, inName: inName) {
        for byte in PercentCoding.encoded(byte) { sink.write(byte) }
      } else {
        sink.write(byte)
      }
    }
  }

  private static func isEncoded(_ byte: UInt8, inName: Bool) -> Bool {
    switch byte {
    case 0...0x20, 0x7F, UInt8(ascii: "%"), UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "&"): true
    case UInt8(ascii: "="), UInt8(ascii: "#"): inName
    default: false
    }
  }
}
