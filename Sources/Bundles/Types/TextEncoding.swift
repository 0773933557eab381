/// Detects text encodings, which have IANA names.
public enum TextEncoding {
  /// The number of bytes that detection examines.
  public static let leadingCount = 64 << 10

  /// The encoding of a file: the one of its byte order mark, or `utf-8` if the MIME type is textual and the first
  /// bytes are valid; otherwise nil.
  /// - Parameters:
  ///   - leading: The first ``leadingCount`` bytes. Further bytes are ignored.
  ///   - isWhole: Whether these are all bytes. If not, the last character may be incomplete.
  ///   - type: The MIME type.
  public static func name(ofContent leading: [UInt8], isWhole: Bool, type: String) -> String? {
    if let name = byByteOrderMark(leading) { return name }
    guard isTextual(type) else { return nil }
    let isTruncated = !isWhole || leading.count > leadingCount
    return isUTF8(leading.prefix(leadingCount), isTruncated: isTruncated) ? "utf-8" : nil
  }

  /// The encoding of a byte order mark; nil if there is none.
  public static func byByteOrderMark(_ leading: [UInt8]) -> String? {
    // UTF-32 is first because its little-endian mark begins with that of UTF-16.
    marks.first { leading.starts(with: $0.bytes) }?.name
  }

  /// Whether a MIME type is textual; parameters are ignored.
  public static func isTextual(_ type: String) -> Bool {
    let name = String(
      decoding: lowercased(Array(type.utf8.prefix { $0 != UInt8(ascii: ";") })), as: UTF8.self)
    return name.hasPrefix("text/") || structured.contains { name.hasSuffix($0) } || textual.contains(name)
  }

  private static let marks: [(bytes: [UInt8], name: String)] = [
    ([0xFF, 0xFE, 0, 0], "utf-32le"), ([0, 0, 0xFE, 0xFF], "utf-32be"), ([0xEF, 0xBB, 0xBF], "utf-8"),
    ([0xFF, 0xFE], "utf-16le"), ([0xFE, 0xFF], "utf-16be"),
  ]

  private static let structured = ["+json", "+xml", "+yaml"]

  /// Textual types whose names do not show it.
  private static let textual: Set<String> = [
    "application/ecmascript", "application/javascript", "application/json", "application/json5",
    "application/rtf", "application/sql", "application/toml", "application/typescript",
    "application/x-csh", "application/x-desktop", "application/x-javascript", "application/x-perl",
    "application/x-php", "application/x-plist", "application/x-python", "application/x-ruby",
    "application/x-sh", "application/x-shellscript", "application/x-subrip", "application/x-tcl",
    "application/x-tex", "application/x-yaml", "application/xml", "application/xml-dtd",
    "application/yaml",
  ]

  /// Whether the bytes are valid UTF-8. If they are truncated, the last character may be incomplete.
  static func isUTF8(_ bytes: ArraySlice<UInt8>, isTruncated: Bool) -> Bool {
    do throws(UTF8.ValidationError) {
      _ = try UTF8Span(validating: bytes.span)
      return true
    } catch {
      return isTruncated && error.kind == .truncatedScalar && error.byteOffsets.upperBound == bytes.count
    }
  }
}
