import Bundles
import Posix
import PropertyLists
import StringTables

/// The content of a `.strings`, `.stringsdict`, `.xcstrings` or `.loctable` file.
struct ParsedTables: Sendable {
  var strings = StringTable()
  var plurals = PluralTable()
  /// Whether the table ends the merging with those of the layers below.
  var isComplete = false
  /// The keys that are their own texts, at the end of a search.
  var untranslated: StringTable?
  /// Of a file with several languages, these.
  var catalog: StringCatalog?
  var error: TableError?
  /// Whether the file was replaced or removed before it was read.
  var isReplaced = false
  /// Whether the file could not be read, which may be otherwise the next time.
  var wasUnreadable = false
}

extension ParsedTables {
  /// The size of a file that is read at most; no table is that large.
  private static let maxFileSize = 32 << 20

  init(_ file: ResourceVersion, _ path: [UInt8], _ variant: TextVariant) {
    do throws(Errno) {
      guard let content = try file.content(limit: Self.maxFileSize) else {
        self.init(error: TableError(path: path, reason: "not a regular file, or larger than 32 MiB"))
        return
      }
      self.init(content, path, variant)
    } catch {
      self.init(error: TableError(path: path, reason: error.description))
      wasUnreadable = true
      isReplaced = error == .staleFileHandle || error == .noSuchFileOrDirectory
    }
  }

  private init(_ content: [UInt8], _ path: [UInt8], _ variant: TextVariant) {
    self.init()
    func table<Table>(_ parsed: ParsedTable<Table>) -> Table {
      error = parsed.error.map { TableError(path: path, reason: $0.reason, position: $0.position) }
      return parsed.table
    }
    switch path.lastIndex(of: UInt8(ascii: ".")).map({ String(decoding: path[$0...], as: UTF8.self) }) {
    case ".stringsdict": plurals = table(PluralTable.parse(content, for: variant))
    case ".xcstrings": catalog = table(StringCatalog.parse(content, for: variant))
    case ".loctable": catalog = table(StringCatalog.parse(locTable: content, for: variant))
    default:
      strings = table(StringTable.parse(content))
      isComplete = StringTable.isComplete(content)
    }
  }

  /// The languages of a catalog; nil for one that has none, as it could not be read.
  var languages: CatalogLanguages? {
    guard let catalog else { return nil }
    return CatalogLanguages(
      languages: catalog.languages.map { Array($0.utf8) },
      source: catalog.sourceLanguage.map { Array($0.utf8) })
  }

  /// The tables of a part of a catalog.
  func part(of file: ResourceVersion) -> ParsedTables {
    guard let catalog, let language = file.localization.map({ String(decoding: $0, as: UTF8.self) }) else {
      return self
    }
    var part = self
    let tables = catalog[language]
    (part.strings, part.plurals) = (tables?.strings ?? StringTable(), tables?.plurals ?? PluralTable())
    if file.part == .source { part.untranslated = catalog.untranslated }
    return part
  }
}
