/// A file name, path or link target: any bytes but NUL.
public struct ByteString: Hashable, Comparable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible
{
  /// The bytes.
  public var bytes: [UInt8]

  /// Creates a string of these bytes.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Creates a string of the text's UTF-8 bytes.
  public init(_ text: String) { bytes = [UInt8](text.utf8) }

  /// Creates a string of the literal's UTF-8 bytes.
  public init(stringLiteral text: String) { bytes = [UInt8](text.utf8) }

  /// Copies `count` bytes of a C string.
  public init(cString: UnsafePointer<CChar>, count: Int) {
    bytes = [UInt8](UnsafeRawBufferPointer(start: cString, count: count))
  }

  /// The number of bytes.
  public var count: Int { bytes.count }

  /// The bytes as text, with invalid UTF-8 replaced.
  public var text: String { String(decoding: bytes, as: UTF8.self) }

  /// Compares byte by byte; a prefix comes first.
  public static func < (left: ByteString, right: ByteString) -> Bool {
    left.bytes.lexicographicallyPrecedes(right.bytes)
  }

  /// Appends a path component.
  public static func / (path: ByteString, name: ByteString) -> ByteString {
    if path.bytes.isEmpty { return name }
    return ByteString(
      path.bytes + (path.bytes.last == UInt8(ascii: "/") ? [] : [UInt8(ascii: "/")]) + name.bytes)
  }

  /// Concatenates the bytes.
  public static func + (left: ByteString, right: ByteString) -> ByteString {
    ByteString(left.bytes + right.bytes)
  }

  /// Whether it begins with these bytes.
  public func hasPrefix(_ prefix: ByteString) -> Bool { bytes.starts(with: prefix.bytes) }

  /// The path without its last component.
  public var parent: ByteString {
    guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return "" }
    return slash == 0 ? "/" : ByteString([UInt8](bytes[..<slash]))
  }

  /// The last component of the path.
  public var lastComponent: ByteString {
    guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return self }
    return ByteString([UInt8](bytes[(slash + 1)...]))
  }

  /// Printable: bytes other than plain ASCII as `\xNN`, long runs of one byte shortened.
  public var description: String {
    var text = ""
    var index = 0
    while index < bytes.count {
      let run = bytes[index...].prefix { $0 == bytes[index] }.count
      text += Self.printable(bytes[index])
      if run > 8 {
        text += "{\(run)}"
        index += run
      } else {
        index += 1
      }
    }
    return text
  }

  private static func printable(_ byte: UInt8) -> String {
    if byte >= 0x20 && byte < 0x7f && byte != UInt8(ascii: "\\") {
      return String(UnicodeScalar(byte))
    }
    return "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
  }
}
