import Glibc
import Posix

enum Terminal {
  static func print(_ text: String) { write(text + "\n", to: STDOUT_FILENO) }

  static func printError(_ text: String) { write("bundlefs: \(text.escapingControls)\n", to: STDERR_FILENO) }

  private static func write(_ text: String, to file: CInt) {
    var rest = ArraySlice(text.utf8)
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
      if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { return }
    }
  }
}

extension CommandLine {
  /// The arguments as bytes: they need not be UTF-8.
  static var bytes: [[UInt8]] {
    (0..<Int(argc)).compactMap { unsafeArgv[$0].map { [UInt8](bytesOf: $0) } }
  }
}

extension [UInt8] {
  /// The bytes for display; invalid UTF-8 is replaced.
  var shown: String { String(decoding: self, as: UTF8.self) }
}

extension String {
  /// The text with every byte of a control character as `\xNN`, so that a file name cannot control the terminal.
  var escapingControls: String {
    unicodeScalars.contains(where: Self.isControl)
      ? unicodeScalars.map { Self.isControl($0) ? Self.escape($0) : String($0) }.joined()
      : self
  }

  /// Includes line separators and bidirectional formatting.
  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
    default: scalar.properties.generalCategory == .control
    }
  }

  private static func escape(_ control: Unicode.Scalar) -> String {
    String(control).utf8.map { #"\x"# + ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }
      .joined()
  }
}
