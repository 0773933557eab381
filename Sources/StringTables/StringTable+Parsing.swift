import PropertyLists

/// A parsed table, and the error that ended the parsing.
public struct ParsedTable<Table: Sendable>: Sendable {
  /// The table; of a malformed file, what precedes the error.
  public let table: Table
  /// Why the file is malformed; nil if it is whole.
  public let error: PropertyListError?

  /// Creates a value.
  public init(table: Table, error: PropertyListError?) {
    self.table = table
    self.error = error
  }
}

extension StringTable {
  /// Parses a `.strings` file, in time and memory proportional to its size.
  ///
  /// The file is a property list, XML or binary, of which the strings are taken; or a text:
  ///
  ///     /* Title of the window */
  ///     "title" = "Grüße";
  ///
  /// Keys and values may be without quotes if they consist of ASCII letters, digits and `_$/:.-`; `"key";` stands for
  /// a value that equals its key; braces may surround the entries. The escapes are `\n`, `\t`, `\r`, `\a`, `\b`, `\f`,
  /// `\v`, up to three octal digits (of the NeXTSTEP encoding), and `\U` or `\u` before four hexadecimal digits of
  /// UTF-16; any other character after a backslash stands for itself. A text is UTF-8, UTF-16 or UTF-32, with a byte
  /// order mark or without.
  ///
  /// A comment is kept with the key that follows; one that ends the line of an entry, with that entry.
  public static func parse(_ content: [UInt8]) -> ParsedTable<StringTable> {
    if case .binary = PropertyList.Format(of: content) { return strings(of: PropertyList(content)) }
    guard let text = PropertyListText(content) else { return strings(of: PropertyList(content)) }
    if case .xml = PropertyList.Format(of: text.utf8) { return strings(of: PropertyList(decoded: text)) }
    var parser = StringsParser(text.utf8)
    let failure = parser.parse()
    return ParsedTable(table: parser.table, error: text.error(after: failure))
  }

  /// The strings of a property list. Other values are left out.
  private static func strings(of list: PropertyList) -> ParsedTable<StringTable> {
    let entries = list.dictionary.members.lazy.compactMap { member in
      member.value.string.map { Entry(key: member.key, value: $0) }
    }
    return ParsedTable(table: StringTable(entries), error: list.error)
  }

  /// Whether a file is a property list with values that are no strings, which ``parse(_:)`` leaves out.
  public static func hasOtherValues(_ content: [UInt8]) -> Bool {
    var isList = true
    if let text = PropertyListText(content), case .openStep = PropertyList.Format(of: text.utf8) {
      isList = false
    }
    if case .binary = PropertyList.Format(of: content) { isList = true }
    return isList && PropertyList(content).dictionary.members.contains { $0.value.string == nil }
  }
}
