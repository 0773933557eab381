import Bundles
import Foundation
import Posix
import PropertyLists
import StringTables

/// A table from which strings were asked.
struct TableQuery: Hashable {
  let table: String
  /// The only ones to search; nil for the preferred ones.
  let localizations: [String]?
  /// Whether a string with arguments is asked for.
  var isFormatted = false

  static let limit = 1024

  /// A `.strings` file precedes the `.stringsdict` file beside it, whose formats are of no use without arguments; with
  /// them it is the other way round.
  fileprivate func names(_ name: [UInt8]) -> TableNames {
    let suffixes = isFormatted ? [".stringsdict", ".strings"] : [".strings", ".stringsdict"]
    return TableNames(
      tables: suffixes.map { name + $0.utf8 }, catalogs: [".xcstrings", ".loctable"].map { name + $0.utf8 })
  }

  init(_ name: String?, _ localization: String?, isFormatted: Bool = false) {
    self.init(name, localizations: localization.map { [$0] }, isFormatted: isFormatted)
  }

  init(_ name: String?, localizations: [String]?, isFormatted: Bool = false) {
    table = name.flatMap { $0.isEmpty ? nil : $0 } ?? "Localizable"
    (self.localizations, self.isFormatted) = (localizations, isFormatted)
  }
}

extension LayeredBundle {
  /// The string of a key.
  ///
  /// The substitutions' tables are searched in order, and then the main bundle's. Each layer is searched whole: its
  /// unlocalized table, then those of the preferred localizations, then `Base`. So a substitution need only have the
  /// keys that it changes. With ``LookupOptions/StringOrder/languageFirst`` each language is searched in all layers before the
  /// next. Of a table with a syntax error the strings before the error are used; see ``tableErrors``.
  ///
  /// In a layer and a language, a `.strings` file precedes the `.stringsdict`, the `.xcstrings` and the `.loctable` file of
  /// the same table. If none has the key, catalogs (`.xcstrings`) give the text in their source language, which for an
  /// untranslated key is the key.
  /// - Parameters:
  ///   - key: the key.
  ///   - value: what is returned if no table has the key; nil or empty for the key itself.
  ///   - table: the name of the table without its extension; nil or empty for `Localizable`.
  ///   - localization: the only localization to search, besides unlocalized tables; nil for the preferred ones.
  public func localizedString(
    forKey key: String, value: String? = nil, table: String? = nil, localization: String? = nil
  ) -> String {
    string(key, value, TableQuery(table, localization))
  }

  /// The string of a key, as Foundation's method of this name.
  public func localizedString(forKey key: String, value: String?, table: String?) -> String {
    string(key, value, TableQuery(table, nil))
  }

  /// The string of a key in some localizations.
  /// - Parameters:
  ///   - key: the key.
  ///   - value: what is returned if no table has the key; nil or empty for the key itself.
  ///   - table: the name of the table without its extension; nil or empty for `Localizable`.
  ///   - localizations: the only localizations to search, in order, besides their parents (`fr` for `fr-CA`) and unlocalized
  ///     tables.
  public func localizedString(
    forKey key: String, value: String? = nil, table: String? = nil, localizations: [String]
  ) -> String {
    string(key, value, TableQuery(table, localizations: localizations))
  }

  private func string(_ key: String, _ value: String?, _ query: TableQuery) -> String {
    let found = first(query) { table in
      table.content.strings[key] ?? table.content.plurals[key]?.format ?? table.content.untranslated?[key]
    }
    return found ?? value.flatMap { $0.isEmpty ? nil : $0 } ?? key
  }

  /// The string of a key, with arguments in the place of the format's specifiers (`%d`, `%2$@`).
  ///
  /// A key of a `.stringsdict` file or a catalog has its plural form by the rule of the table's language; a `.stringsdict`
  /// file precedes the `.strings` file beside it. Integers, floating-point numbers and texts may stand for any specifier: one of another
  /// type than the argument shows its plain text. A specifier without an argument stays as it is.
  /// - Parameters:
  ///   - key: the key.
  ///   - value: the format if no table has the key; nil or empty for the key itself.
  ///   - table: the name of the table without its extension; nil or empty for `Localizable`.
  ///   - localization: the only localization to search, besides unlocalized tables; nil for the preferred ones.
  ///   - arguments: integers, floating-point numbers, and values that are shown by their descriptions.
  public func localizedString(
    forKey key: String, value: String? = nil, table: String? = nil, localization: String? = nil,
    arguments: [any CustomStringConvertible]
  ) -> String {
    let arguments = arguments.map(FormatArgument.init)
    let found = first(TableQuery(table, localization, isFormatted: true)) { table in
      table.content.plurals.text(for: key, arguments: arguments, language: table.language)
        ?? (table.content.strings[key] ?? table.content.untranslated?[key])
        .map { StringTable.text(of: $0, arguments: arguments) }
    }
    return found ?? StringTable.text(of: value.flatMap { $0.isEmpty ? nil : $0 } ?? key, arguments: arguments)
  }

  /// Whether a table has a string for a key. Parameters as for `localizedString(forKey:value:table:localization:)`, which
  /// returns the key itself for one that is missing, and may return the same for one that a table has.
  public func hasLocalizedString(
    forKey key: String, table: String? = nil, localization: String? = nil
  ) -> Bool {
    let found = first(TableQuery(table, localization)) { table in
      let content = table.content
      let has =
        content.strings[key] != nil || content.plurals[key] != nil || content.untranslated?[key] != nil
      return has ? true : nil
    }
    return found ?? false
  }

  /// Whether a table has a string for a key.
  public func hasLocalizedString(forKey key: String, table: String?) -> Bool {
    hasLocalizedString(forKey: key, table: table, localization: nil)
  }

  /// The present errors of the tables from which strings were asked so far, in all layers, sorted by path.
  ///
  /// Reading this parses tables that were changed since, and those that no search has reached.
  public var tableErrors: [TableError] {
    var errors: [String: TableError] = [:]
    for query in queries.withLock({ $0 }) {
      for table in tables(query) {
        if let error = table.error { errors[error.path] = error }
      }
    }
    return errors.values.sorted { $0.path < $1.path }
  }

  // MARK: - Tables

  /// The first result that the body has for a table, in the order of the search.
  ///
  /// A search in which a table is replaced begins anew: what the table hides would be found instead.
  func first<Result>(_ query: TableQuery, _ body: (ReachedTable) -> Result?) -> Result? {
    guard let layers = try? layers() else { return nil }
    var former: TableReplaced?
    // Limited in case tables are replaced in an endless loop.
    for _ in 0..<64 {
      let (tables, ticket) = layers.tables(query) { () throws(Errno) in try files(query, layers) }
      func cache(_ tables: SearchedTables?) {
        if let ticket { layers.cache?.insert(ticket) { $0.tables[query] = tables } }
      }
      do throws(TableReplaced) {
        let parse = { file throws(TableReplaced) in try self.reached(file, layers, isLast: false) }
        return try tables.first(parse: parse, didParse: cache, body)
      } catch {
        cache(nil)
        // An archive that was overwritten has the file still, and cannot be read.
        if error == former { break }
        former = error
      }
    }
    let tables = SearchedTables((try? files(query, layers)) ?? [])
    let parse = { file throws(TableReplaced) in try self.reached(file, layers, isLast: true) }
    return try? tables.first(parse: parse, didParse: { _ in }, body)
  }

  /// - Parameter isLast: whether a table that cannot be read any more counts as an empty one.
  private func reached(
    _ file: ResourceVersion, _ layers: LayerReader, isLast: Bool
  ) throws(TableReplaced) -> ReachedTable {
    let content = parsed(file, layers)
    if content.isReplaced, !isLast { throw TableReplaced(file.attributes) }
    return ReachedTable(content.part(of: file), language: language(of: file, layers))
  }

  /// The tables of a query in the order of the search, each parsed when it is reached.
  func tables(_ query: TableQuery) -> some Sequence<ParsedTables> {
    let layers = try? layers()
    let files = layers.flatMap { try? self.files(query, $0) } ?? []
    return files.lazy.compactMap { [self] file in layers.map { parsed(file, $0).part(of: file) } }
  }

  private func files(_ query: TableQuery, _ layers: LayerReader) throws(Errno) -> [ResourceVersion] {
    queries.withLock { queries in
      // Bounds the memory for a program that makes up names.
      if queries.count < TableQuery.limit {
        queries.insert(TableQuery(query.table, localizations: query.localizations))
      }
    }
    let path = Self.names(query.table)
    return try layers.lookup.tables(
      query.names(path.last ?? []), in: path.dropLast(), only: query.localizations?.map { Array($0.utf8) }
    ) { [self] catalog in parsed(catalog, layers).languages }
  }

  private func language(of version: ResourceVersion, _ layers: LayerReader) -> String {
    if let name = version.localization, !name.elementsEqual("Base".utf8) {
      return String(decoding: name, as: UTF8.self)
    }
    return (try? layers.lookup.infoPlist().developmentRegion) ?? "en"
  }

  private func parsed(_ version: ResourceVersion, _ layers: LayerReader) -> ParsedTables {
    let path = layers.path(of: version.path, layer: version.layer)
    let options = layers.lookup.options
    // What was parsed depends on these, which are those of a mount at the time.
    let key = path + "\0\(options.idiom?.device ?? "")".utf8
    return tables.value(of: version, at: key, isKept: { !$0.wasUnreadable }) {
      ParsedTables($0, path, TextVariant(device: options.idiom?.device, width: options.textWidth))
    }
  }
}

extension FormatArgument {
  fileprivate init(_ value: any CustomStringConvertible) {
    switch value {
    case let integer as any BinaryInteger:
      if let exact = Int64(exactly: integer) {
        self = .integer(exact)
      } else {
        self = UInt64(exactly: integer).map(FormatArgument.unsigned) ?? .text(integer.description)
      }
    case let number as any BinaryFloatingPoint: self = .number(Double(number))
    default: self = .text(value.description)
    }
  }
}
