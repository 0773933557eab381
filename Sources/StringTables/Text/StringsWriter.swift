extension StringTable {
  /// The table as a `.strings` file: text in UTF-8, each entry in a line behind its comments.
  ///
  /// ``parse(_:)`` reads back the same table.
  public func written() -> [UInt8] {
    var text: [UInt8] = []
    for entry in entries {
      if !text.isEmpty { text.append(0x0A) }
      if let comment = entry.comment { Self.append(comment: comment, to: &text) }
      Self.append(quoted: entry.key, to: &text)
      text += Array(" = ".utf8)
      Self.append(quoted: entry.value, to: &text)
      text += Array(";\n".utf8)
    }
    return text
  }

  /// Appends comments, which are put between delimiters unless they have them.
  private static func append(comment: String, to text: inout [UInt8]) {
    let content = Array(comment.utf8)
    if StringsParser.isComment(content) {
      text += content
    } else {
      text += Array("/* ".utf8)
      append(commentContent: content, to: &text)
      text += Array(" */".utf8)
    }
    text.append(0x0A)
  }

  /// Separates each `*/`, which would end the comment.
  private static func append(commentContent content: [UInt8], to text: inout [UInt8]) {
    for byte in content {
      if byte == UInt8(ascii: "/"), text.last == UInt8(ascii: "*") { text.append(0x20) }
      text.append(byte)
    }
  }

  private static func append(quoted string: String, to text: inout [UInt8]) {
    text.append(UInt8(ascii: "\""))
    for byte in string.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): text += [UInt8(ascii: "\\"), byte]
      case 0x0A: text += Array(#"\n"#.utf8)
      case 0x09: text += Array(#"\t"#.utf8)
      case 0x0D: text += Array(#"\r"#.utf8)
      case 0..<0x20, 0x7F: text += escape(byte)
      default: text.append(byte)
      }
    }
    text.append(UInt8(ascii: "\""))
  }

  private static func escape(_ byte: UInt8) -> [UInt8] {
    let digits = Array("0123456789abcdef".utf8)
    return Array(#"\U00"#.utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 0xF)]]
  }
}

extension StringsParser {
  /// Whether a text consists of comments only, and is read back as it is.
  static func isComment(_ text: [UInt8]) -> Bool {
    var parser = StringsParser(text + Array("\na;".utf8))
    let failure = parser.parse()
    guard failure == nil, parser.table.entries.count == 1, let comment = parser.table.entries[0].comment
    else {
      return false
    }
    return comment.utf8.elementsEqual(text)
  }
}
