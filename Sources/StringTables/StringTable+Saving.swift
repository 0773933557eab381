import PropertyLists

/// What a program has saved of a table that was merged of several.
public struct SavedTable: Sendable {
  /// What it has written.
  private let saved: StringTable
  /// The tables below, merged.
  private let below: StringTable
  /// What it has read before; nil if that was not merged of several.
  private let base: StringTable?
  /// The part of that which was its own table's.
  private let own: StringTable

  /// - Parameters:
  ///   - saved: what was written.
  ///   - below: the tables below, merged.
  ///   - base: what the mount has shown before; nil if that did not have the strings of the tables below.
  ///   - own: the table that was merged with those below; empty if there was none.
  public init(_ saved: StringTable, below: StringTable, base: StringTable?, own: StringTable) {
    (self.saved, self.below, self.base, self.own) = (saved, below, base, own)
  }

  /// The entries that were changed or added, in the order of the file: merged with the tables below they make what was saved.
  /// Those that were left alone follow the tables below, also where these have changed meanwhile.
  /// - Returns: nil if one was removed, which no table can say of those below.
  public var difference: StringTable? {
    if saved.endsMerging || hasRemovals { return nil }
    let (belowLines, baseLines) = (CommentLines(below), base.map(CommentLines.init))
    return StringTable(
      saved.entries.map(StringTable.unmarked).filter { entry in
        let wasOwn = own[entry.key] != nil
        let isSame = Self.isSame(below[entry.key], entry.value)
        let isUnchanged = !wasOwn && Self.isSame(base?[entry.key], entry.value)
        if !isSame, !isUnchanged { return true }
        // A comment by itself counts if it says something new: programs omit, reformat and move comments.
        guard let comment = entry.comment else { return false }
        return !belowLines.contain(comment) && (wasOwn || baseLines?.contain(comment) != true)
      })
  }

  private var hasRemovals: Bool {
    below.entries.contains { entry in
      if saved[entry.key] != nil { return false }
      // A table below may have got it meanwhile.
      return base.map { $0[entry.key] != nil } ?? true
    }
  }

  private static func isSame(_ value: String?, _ other: String) -> Bool {
    value.map { ExactText($0) == ExactText(other) } ?? false
  }
}

/// The lines of all comments of a table, without what formats them.
private struct CommentLines {
  private var lines: Set<ExactText> = []

  init(_ table: StringTable) {
    for entry in table.entries {
      if let comment = entry.comment { lines.formUnion(Self.lines(of: comment)) }
    }
  }

  func contain(_ comment: String) -> Bool { Self.lines(of: comment).allSatisfy(lines.contains) }

  private static func lines(of comment: String) -> [ExactText] {
    comment.utf8.split { $0 == 0x0A || $0 == 0x0D }.compactMap { line in
      let isFormat = { (byte: UInt8) in byte <= 0x20 || byte == UInt8(ascii: "*") || byte == UInt8(ascii: "/")
      }
      let text = line.drop(while: isFormat)
      guard let end = text.lastIndex(where: { !isFormat($0) }) else { return nil }
      return ExactText(String(Substring(text[...end])))
    }
  }
}

extension StringTable {
  /// The comment at the top of a text that ends the merging: the tables below have no part in the result.
  public static let wholeMark = "/* bundlefs: whole table. Strings of the layers below do not show. */"
  private static let markStart = Array("/* bundlefs: whole table".utf8)

  /// An entry without the mark, which a program may have moved with the entry.
  static func unmarked(_ entry: Entry) -> Entry {
    guard let comment = entry.comment, isMarked(Array(comment.utf8)) else { return entry }
    let rest = comment.firstRange(of: "*/").map { comment[$0.upperBound...].drop { $0 == "\n" } } ?? ""
    return Entry(key: entry.key, value: entry.value, comment: rest.isEmpty ? nil : String(rest))
  }

  /// Whether a text begins with the mark.
  static func isMarked(_ text: [UInt8]) -> Bool {
    text.drop { $0 <= 0x20 }.starts(with: markStart)
  }

  /// The content of a table that the tables below have no part in.
  /// - Parameter content: a table without the mark. A property list becomes a text.
  public static func whole(_ content: [UInt8]) -> [UInt8] {
    let mark = Array((wholeMark + "\n").utf8)
    guard let text = text(content) else { return mark + [0x0A] + parse(content).table.written() }
    return text.encode(mark + text.utf8)
  }

  /// The table as a text in the encoding of another file; in UTF-8 if that is no text.
  public func written(as content: [UInt8]) -> [UInt8] {
    Self.text(content)?.encode(written()) ?? written()
  }

  /// A text in the encoding of another one; unchanged if one of them is none.
  public static func transcode(_ content: [UInt8], as other: [UInt8]) -> [UInt8] {
    guard let text = text(content), let model = Self.text(other) else { return content }
    return model.encode(text.utf8)
  }

  /// - Returns: nil for property lists.
  private static func text(_ content: [UInt8]) -> PropertyListText? {
    if case .binary = PropertyList.Format(of: content) { return nil }
    guard let text = PropertyListText(content) else { return nil }
    if case .xml = PropertyList.Format(of: text.utf8) { return nil }
    return text
  }

  /// Whether a file is a text in UTF-8, and has the values of this table.
  public func isShown(by content: [UInt8]) -> Bool {
    guard Self.text(content) != nil, !PropertyListText.hasWideCharacters(Array(content.prefix(4))) else {
      return false
    }
    let parsed = Self.parse(content)
    guard parsed.error == nil, parsed.table.entries.count == entries.count else { return false }
    return entries.allSatisfy { entry in
      parsed.table[entry.key].map { ExactText($0) == ExactText(entry.value) } ?? false
    }
  }
}
