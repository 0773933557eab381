/// How the text of a file is encoded, by the names of IANA's register.
public enum TextEncoding {
  /// As many first bytes as an encoding is told by.
  public static let leadingCount = 64 << 10

  /// The encoding of a file: by the byte order mark with which it begins, else `utf-8` if its first bytes are
  /// valid and its type is textual; nil if neither is so.
  /// - Parameters:
  ///   - leading: its first ``leadingCount`` bytes, or all; what comes after them is not looked at.
  ///   - isWhole: whether these are all its bytes; if not, the last character may be cut.
  ///   - type: its MIME type.
  public static func name(ofContent leading: [UInt8], isWhole: Bool, type: String) -> String? {
    if let name = byMark(leading) { return name }
    guard isTextual(type) else { return nil }
    let isCut = !isWhole || leading.count > leadingCount
    return isUTF8(leading.prefix(leadingCount), isCut: isCut) ? "utf-8" : nil
  }

  /// The encoding that a byte order mark tells; nil without one.
  public static func byMark(_ leading: [UInt8]) -> String? {
    // The mark of UTF-16 is the beginning of that of UTF-32.
    marks.first { leading.starts(with: $0.bytes) }?.name
  }

  /// Whether files of a MIME type are text, by its name; parameters do not count.
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

  /// Types that are text although they are not called so.
  private static let textual: Set<String> = [
    "application/ecmascript", "application/javascript", "application/json", "application/json5",
    "application/rtf", "application/sql", "application/toml", "application/typescript",
    "application/x-csh", "application/x-desktop", "application/x-javascript", "application/x-perl",
    "application/x-php", "application/x-plist", "application/x-python", "application/x-ruby",
    "application/x-sh", "application/x-shellscript", "application/x-subrip", "application/x-tcl",
    "application/x-tex", "application/x-yaml", "application/xml", "application/xml-dtd",
    "application/yaml",
  ]

  /// Whether the bytes are valid UTF-8, but for a last character that is cut.
  static func isUTF8(_ bytes: ArraySlice<UInt8>, isCut: Bool) -> Bool {
    var place = bytes.startIndex
    while place < bytes.endIndex {
      if bytes[place] < 0x80 {
        place += 1
        continue
      }
      guard let follow = following(bytes[place]) else { return false }
      let rest = bytes[(place + 1)...].prefix(follow.count)
      if let second = rest.first, !follow.second.contains(second) { return false }
      if !rest.dropFirst().allSatisfy({ (0x80...0xBF).contains($0) }) { return false }
      if rest.count < follow.count { return isCut }
      place += 1 + follow.count
    }
    return true
  }

  /// How many bytes follow a first one, and what the next of them may be: no overlong form, no surrogate,
  /// nothing above U+10FFFF.
  private static func following(_ first: UInt8) -> (count: Int, second: ClosedRange<UInt8>)? {
    switch first {
    case 0xC2...0xDF: (1, 0x80...0xBF)
    case 0xE0: (2, 0xA0...0xBF)
    case 0xED: (2, 0x80...0x9F)
    case 0xE1...0xEF: (2, 0x80...0xBF)
    case 0xF0: (3, 0x90...0xBF)
    case 0xF1...0xF3: (3, 0x80...0xBF)
    case 0xF4: (3, 0x80...0x8F)
    default: nil
    }
  }
}
