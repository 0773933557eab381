/// A file name, path or link target: bytes of which nothing is assumed but that they hold no NUL.
public struct ByteString: Hashable, Comparable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible
{
  /// The bytes.
  public var bytes: [UInt8]

  /// These bytes.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The text's UTF-8.
  public init(_ text: String) { bytes = [UInt8](text.utf8) }

  /// The literal's UTF-8.
  public init(stringLiteral text: String) { bytes = [UInt8](text.utf8) }

  /// The bytes up to the NUL that ends them.
  public init(cString: UnsafePointer<CChar>, count: Int) {
    bytes = [UInt8](UnsafeRawBufferPointer(start: cString, count: count))
  }

  /// The count of bytes.
  public var count: Int { bytes.count }

  /// As text, for command lines; what is not UTF-8 is replaced.
  public var text: String { String(decoding: bytes, as: UTF8.self) }

  /// Byte by byte, shorter first.
  public static func < (left: ByteString, right: ByteString) -> Bool {
    left.bytes.lexicographicallyPrecedes(right.bytes)
  }

  /// The name below the path.
  public static func / (path: ByteString, name: ByteString) -> ByteString {
    if path.bytes.isEmpty { return name }
    return ByteString(
      path.bytes + (path.bytes.last == UInt8(ascii: "/") ? [] : [UInt8(ascii: "/")]) + name.bytes)
  }

  /// One after the other, nothing between.
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

  /// Printable: what is not plain ASCII as `\xNN`, long runs of one byte shortened.
  public var description: String {
    var text = ""
    var place = 0
    while place < bytes.count {
      let run = bytes[place...].prefix { $0 == bytes[place] }.count
      text += Self.printable(bytes[place])
      if run > 8 {
        text += "{\(run)}"
        place += run
      } else {
        place += 1
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
