import PropertyLists

extension StringTable {
  /// What a table must have so that it is merged with others to a wanted one.
  public struct Difference: Sendable, Equatable {
    /// The entries that are new or changed, in the order of the wanted table. A comment that the others have is left out.
    public let table: StringTable
    /// Whether the wanted table lacks keys of the others, which no entry can say.
    public let lacksKeys: Bool
  }

  /// The difference of this table from those that it is to be merged with.
  ///
  /// Merging gives the keys and values of this table again, but not its order. A comment that was removed alone comes back.
  /// - Parameter below: the other tables, merged.
  public func difference(from below: StringTable) -> Difference {
    var changed = StringTable()
    var common = 0
    for entry in entries {
      guard let other = below.entry(for: entry.key) else {
        changed.set(entry)
        continue
      }
      common += 1
      if let entry = entry.difference(from: other) { changed.set(entry) }
    }
    return Difference(table: changed, lacksKeys: common < below.entries.count)
  }
}

extension StringTable.Entry {
  /// - Returns: nil for no difference.
  fileprivate func difference(from other: Self) -> Self? {
    let hasSameComment = comment.map(ExactText.init) == other.comment.map(ExactText.init)
    let hasSameValue = ExactText(value) == ExactText(other.value)
    if hasSameValue, hasSameComment || comment == nil { return nil }
    return Self(key: key, value: value, comment: hasSameComment ? nil : comment)
  }
}

// MARK: - Complete tables

extension StringTable {
  /// The comment that begins a table whose keys are all that are wanted.
  public static let completenessComment = "/* bundlefs: complete table; layers below are not merged */"

  /// How such a comment begins; what follows may be put in other words.
  private static let completenessStart: StaticString = "/* bundlefs: complete table"

  /// Whether a file begins with the comment of a complete table. It ends the merging of tables.
  public static func isComplete(_ content: [UInt8]) -> Bool {
    if case .binary = PropertyList.Format(of: content) { return false }
    guard let text = PropertyListText(content) else { return false }
    var scanner = ByteScanner(text.utf8)
    scanner.skipWhitespace()
    return scanner.take(completenessStart)
  }

  /// A file with the comment of a complete table in front, in its encoding. A property list is converted to a text in UTF-8.
  public static func complete(_ content: [UInt8]) -> [UInt8] {
    let comment = Array("\(completenessComment)\n".utf8)
    guard let text = text(content) else { return comment + parse(content).table.written() }
    return text.encode(comment + text.utf8)
  }

  /// The table without the comment of a complete one, so that a text that is merged of it does not begin with it.
  public var withoutCompletenessComment: StringTable {
    guard var first = entries.first, let comment = first.comment else { return self }
    var scanner = ByteScanner(Array(comment.utf8))
    guard scanner.take(Self.completenessStart), scanner.skip(past: "*/") else { return self }
    _ = scanner.take(UInt8(ascii: "\n"))
    let rest = scanner.text[scanner.offset...]
    first.comment = rest.isEmpty ? nil : String(decoding: rest, as: UTF8.self)
    var table = self
    table.set(first)
    return table
  }
}

// MARK: - Several tables

extension StringTable {
  /// The first and the last of several tables that have a key.
  public struct KeyPlaces: Sendable {
    private var places: [ExactText: (first: Int, last: Int)] = [:]

    /// Without any table.
    public init() {}

    /// Adds the keys of the next table.
    public mutating func add(_ table: StringTable, at place: Int) {
      for entry in table.entries { places[ExactText(entry.key), default: (place, place)].last = place }
    }

    /// The place of the first table that has a key; nil for none.
    public func first(_ key: String) -> Int? { places[ExactText(key)]?.first }

    /// The place of the last one.
    public func last(_ key: String) -> Int? { places[ExactText(key)]?.last }
  }
}
