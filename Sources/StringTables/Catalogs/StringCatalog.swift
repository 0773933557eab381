import PropertyLists

/// Localized strings in several languages: the content of a `.xcstrings` or a `.loctable` file.
public struct StringCatalog: Sendable {
  /// The strings in one language.
  public struct Tables: Sendable {
    /// Texts, with or without specifiers.
    public internal(set) var strings = StringTable()
    /// Texts whose form depends on numbers.
    public internal(set) var plurals = PluralTable()

    /// All texts that a `.strings` file can have, those of the file first: of a text whose form depends on a number in it
    /// the form of most numbers. Texts with further variables are left out.
    public var withoutVariables: StringTable {
      var table = strings
      for (key, entry) in plurals.sorted where entry.variables.isEmpty {
        table.set(.init(key: key, value: entry.format))
      }
      return table
    }
  }

  /// The language of the keys, `en` if the file names none; nil for `.loctable` files.
  public internal(set) var sourceLanguage: String?
  /// The keys without a text in the source language, each of which is its own text.
  public internal(set) var untranslated = StringTable()
  private var tables: [String: Tables] = [:]

  /// Creates an empty catalog.
  public init() {}

  /// The languages that have strings, as the file names them, sorted.
  public var languages: [String] { tables.keys.sorted() }

  /// The strings in a language; nil without any.
  public subscript(language: String) -> Tables? { tables[language] }

  /// What the spellings of a language's name have in common: `pt_br` and `pt-BR` are one.
  public static func key(ofLanguage name: some Sequence<UInt8>) -> [UInt8] {
    name.map { byte in
      if byte == UInt8(ascii: "_") { return UInt8(ascii: "-") }
      return (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
  }

  /// What the catalog contributes to a `.strings` file: `Tables.withoutVariables` of a language, in all spellings of its
  /// name.
  /// - Parameter language: its `key(ofLanguage:)`.
  public func table(ofLanguage language: [UInt8]) -> StringTable {
    let spellings = languages.filter { Self.key(ofLanguage: $0.utf8) == language }
    return StringTable.merge(spellings.compactMap { self[$0]?.withoutVariables })
  }

  mutating func set(_ key: String, to text: CatalogText, in language: String, comment: String?) {
    switch text {
    case .plain(let value):
      tables[language, default: Tables()].strings.set(.init(key: key, value: value, comment: comment))
    case .entry(let entry): tables[language, default: Tables()].plurals[key] = entry
    }
  }
}

/// A text of a catalog.
enum CatalogText {
  case plain(String)
  case entry(PluralTable.Entry)
}

extension StringCatalog {
  /// Parses a `.xcstrings` file, in time and memory proportional to its size. Of a malformed one, the keys before the error
  /// are used.
  ///
  /// A text in the state `new` counts in the source language only: in others it is a copy that is not translated yet. Texts
  /// whose keys are `stale` count. Sets of strings for app shortcuts are left out.
  /// - Parameter variant: chooses among texts for devices and widths.
  public static func parse(
    _ content: [UInt8], for variant: TextVariant = TextVariant()
  ) -> ParsedTable<StringCatalog> {
    guard let text = PropertyListText(content) else {
      return ParsedTable(
        table: StringCatalog(), error: PropertyListError(reason: "an unknown encoding", position: nil))
    }
    var parser = CatalogParser(text.utf8, variant)
    let failure = parser.parse()
    return ParsedTable(table: parser.catalog, error: text.error(after: failure))
  }

  /// Parses a `.loctable` file: a property list of any format that has a `.strings` or `.stringsdict` file's content for each
  /// language.
  /// - Parameter variant: chooses among texts for devices and widths.
  public static func parse(
    locTable content: [UInt8], for variant: TextVariant = TextVariant()
  ) -> ParsedTable<StringCatalog> {
    let list = PropertyList(content)
    var catalog = StringCatalog()
    // The other member says where the texts come from.
    for language in list.dictionary.members where language.key != "LocProvenance" {
      for member in language.value.dictionary?.members ?? [] {
        let text: CatalogText? =
          member.value.string.map { .plain($0) }
          ?? member.value.dictionary.flatMap { PluralTable.Entry($0, variant) }.map { .entry($0) }
        if let text { catalog.set(member.key, to: text, in: language.key, comment: nil) }
      }
    }
    return ParsedTable(table: catalog, error: list.error)
  }
}
