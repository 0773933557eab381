import PropertyLists

/// A table of localized strings: the content of a `.strings` file.
///
/// The entries have the order of the file. Keys are compared by their code points, as in Foundation: composed and
/// decomposed letters differ.
public struct StringTable: Sendable {
  /// A key, its value, and the comments that precede it.
  public struct Entry: Sendable, Hashable {
    /// The key.
    public var key: String
    /// The value.
    public var value: String
    /// The comments as in a file, with their delimiters, separated by line feeds; nil without any.
    public var comment: String?

    /// Creates an entry. A comment without delimiters gets them when the table is written.
    public init(key: String, value: String, comment: String? = nil) {
      self.key = key
      self.value = value
      self.comment = comment
    }

    /// Whether two entries have the same code points.
    public static func == (left: Self, right: Self) -> Bool {
      ExactText(left.key) == ExactText(right.key) && ExactText(left.value) == ExactText(right.value)
        && left.comment.map(ExactText.init) == right.comment.map(ExactText.init)
    }

    /// Hashes the key, the value and the comment.
    public func hash(into hasher: inout Hasher) {
      hasher.combine(ExactText(key))
      hasher.combine(ExactText(value))
      hasher.combine(comment.map(ExactText.init))
    }
  }

  /// The entries in the order of their keys' first occurrence.
  public private(set) var entries: [Entry] = []
  private var indexes: [ExactText: Int] = [:]

  /// Creates an empty table.
  public init() {}

  /// Creates a table. Of entries with the same key, the last one counts.
  public init(_ entries: some Sequence<Entry>) {
    for entry in entries { set(entry) }
  }

  /// The value of a key; nil without it.
  public subscript(key: String) -> String? { indexes[ExactText(key)].map { entries[$0].value } }

  /// The entry of a key; nil without it.
  public func entry(for key: String) -> Entry? { indexes[ExactText(key)].map { entries[$0] } }

  /// Adds an entry, or replaces the one with the same key.
  public mutating func set(_ entry: Entry) {
    let key = ExactText(entry.key)
    if let index = indexes[key] {
      entries[index] = entry
    } else {
      indexes[key] = entries.count
      entries.append(entry)
    }
  }

  /// Merges tables key by key.
  ///
  /// The entries of the first table are followed by those of each next one whose keys are new. An entry without a
  /// comment has the comment of the first table that has one for the key.
  /// - Parameter tables: the tables in descending order of precedence.
  public static func merge(_ tables: some Sequence<StringTable>) -> StringTable {
    var merged = StringTable()
    for table in tables {
      for entry in table.entries {
        guard let index = merged.indexes[ExactText(entry.key)] else {
          merged.set(entry)
          continue
        }
        if merged.entries[index].comment == nil { merged.entries[index].comment = entry.comment }
      }
    }
    return merged
  }
}

extension StringTable: Equatable {
  /// Whether two tables have the same entries in the same order.
  public static func == (left: Self, right: Self) -> Bool { left.entries == right.entries }
}

/// A text that is compared by its code points. `String` compares canonically, which also takes longer.
struct ExactText: Hashable, Sendable {
  let text: String

  init(_ text: String) { self.text = text }

  static func == (left: Self, right: Self) -> Bool {
    left.text.utf8.count == right.text.utf8.count && left.text.utf8.elementsEqual(right.text.utf8)
  }

  func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    hasher.combine(0xFF as UInt8)
  }
}
