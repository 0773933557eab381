extension String {
  /// The text with every byte of a control character as `\xNN`, so that a name cannot control the terminal on which it
  /// is printed.
  public var escapingControls: String {
    unicodeScalars.contains { $0.isControl }
      ? unicodeScalars.map { $0.isControl ? Self.escape($0) : String($0) }.joined()
      : self
  }

  /// Invalid UTF-8 is percent-encoded, and control characters are escaped.
  public init(printing bytes: [UInt8]) { self = String(escaping: bytes).escapingControls }

  private static func escape(_ control: Unicode.Scalar) -> String {
    String(control).utf8.map { #"\x"# + ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }
      .joined()
  }
}

extension Unicode.Scalar {
  /// C0, DEL and C1; line separators and bidirectional formatting.
  var isControl: Bool {
    switch value {
    case 0..<0x20, 0x7F...0x9F, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
  }
}
