import Bundles
import Foundation
import Posix
import PropertyLists
import StringTables

/// The content of a `.strings` or a `.stringsdict` file.
struct ParsedTables: Sendable {
  var strings = StringTable()
  var plurals = PluralTable()
  var error: TableError?
  /// Whether the file was replaced or removed before it was read.
  var isReplaced = false
  /// Whether the file could not be read, which may be otherwise the next time.
  var wasUnreadable = false
}

/// A table from which strings were asked.
struct TableQuery: Hashable {
  let table: String
  let localization: String?
  /// Whether a string with arguments is asked for.
  var isFormatted = false

  static let limit = 1024

  /// A `.strings` file precedes the `.stringsdict` file beside it, whose formats are of no use without arguments; with
  /// them it is the other way round.
  fileprivate var suffixes: [String] {
    isFormatted ? [".stringsdict", ".strings"] : [".strings", ".stringsdict"]
  }

  init(_ name: String?, _ localization: String?, isFormatted: Bool = false) {
    table = name.flatMap { $0.isEmpty ? nil : $0 } ?? "Localizable"
    (self.localization, self.isFormatted) = (localization, isFormatted)
  }
}

extension LayeredBundle {
  /// The string of a key.
  ///
  /// The substitutions' tables are searched in order, and then the main bundle's. Each layer is searched whole: its
  /// unlocalized table, then those of the preferred localizations, then `Base`. So a substitution need only have the
  /// keys that it changes. Of a table with a syntax error the strings before the error are used; see ``tableErrors``.
  /// - Parameters:
  ///   - key: the key.
  ///   - value: what is returned if no table has the key; nil or empty for the key itself.
  ///   - table: the name of the table without `.strings`; nil or empty for `Localizable`.
  ///   - localization: the only localization to search, besides unlocalized tables; nil for the preferred ones.
  public func localizedString(
    forKey key: String, value: String? = nil, table: String? = nil, localization: String? = nil
  ) -> String {
    let found = first(TableQuery(table, localization)) { table in
      table.content.strings[key] ?? table.content.plurals[key]?.format
    }
    return found ?? value.flatMap { $0.isEmpty ? nil : $0 } ?? key
  }

  /// The string of a key, with arguments in the place of the format's specifiers (`%d`, `%2$@`).
  ///
  /// A key of a `.stringsdict` file has its plural form by the rule of the table's language; such a table precedes the
  /// `.strings` file beside it. Integers, floating-point numbers and texts may stand for any specifier: one of another
  /// type than the argument shows its plain text. A specifier without an argument stays as it is.
  /// - Parameters:
  ///   - key: the key.
  ///   - value: the format if no table has the key; nil or empty for the key itself.
  ///   - table: the name of the table without `.strings`; nil or empty for `Localizable`.
  ///   - localization: the only localization to search, besides unlocalized tables; nil for the preferred ones.
  ///   - arguments: integers, floating-point numbers, and values that are shown by their descriptions.
  public func localizedString(
    forKey key: String, value: String? = nil, table: String? = nil, localization: String? = nil,
    arguments: [any CustomStringConvertible]
  ) -> String {
    let arguments = arguments.map(FormatArgument.init)
    let found = first(TableQuery(table, localization, isFormatted: true)) { table in
      table.content.plurals.text(for: key, arguments: arguments, language: table.language)
        ?? table.content.strings[key].map { StringTable.text(of: $0, arguments: arguments) }
    }
    return found ?? StringTable.text(of: value.flatMap { $0.isEmpty ? nil : $0 } ?? key, arguments: arguments)
  }

  /// Whether a table has a string for a key. Parameters as for `localizedString(forKey:value:table:localization:)`, which
  /// returns the key itself for one that is missing, and may return the same for one that a table has.
  public func hasLocalizedString(
    forKey key: String, table: String? = nil, localization: String? = nil
  ) -> Bool {
    let found = first(TableQuery(table, localization)) { table in
      table.content.strings[key] != nil || table.content.plurals[key] != nil ? true : nil
    }
    return found ?? false
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
  private func first<Result>(_ query: TableQuery, _ body: (ReachedTable) -> Result?) -> Result? {
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
    return ReachedTable(content, language: language(of: file, layers))
  }

  /// The tables of a query in the order of the search, each parsed when it is reached.
  func tables(_ query: TableQuery) -> some Sequence<ParsedTables> {
    let layers = try? layers()
    let files = layers.flatMap { try? self.files(query, $0) } ?? []
    return files.lazy.compactMap { [self] file in layers.map { parsed(file, $0) } }
  }

  private func files(_ query: TableQuery, _ layers: LayerReader) throws(Errno) -> [ResourceVersion] {
    queries.withLock { queries in
      // Bounds the memory for a program that makes up names.
      if queries.count < TableQuery.limit {
        queries.insert(TableQuery(query.table, query.localization))
      }
    }
    let path = Self.names(query.table)
    let name = path.last ?? []
    return try layers.lookup.versions(
      of: query.suffixes.map { name + Array($0.utf8) }, in: path.dropLast(),
      localization: query.localization.map { Array($0.utf8) })
  }

  private func language(of version: ResourceVersion, _ layers: LayerReader) -> String {
    if let name = version.localization, !name.elementsEqual("Base".utf8) {
      return String(decoding: name, as: UTF8.self)
    }
    return (try? layers.lookup.infoPlist().developmentRegion) ?? "en"
  }

  private func parsed(_ version: ResourceVersion, _ layers: LayerReader) -> ParsedTables {
    let path = layers.path(of: version.path, layer: version.layer)
    return tables.value(of: version, at: path, isKept: { !$0.wasUnreadable }) { ParsedTables($0, path) }
  }
}

extension ParsedTables {
  /// The size of a file that is read at most; no table is that large.
  private static let maxFileSize = 32 << 20

  fileprivate init(_ file: ResourceVersion, _ path: [UInt8]) {
    do throws(Errno) {
      guard let content = try file.content(limit: Self.maxFileSize) else {
        self.init(error: TableError(path: path, reason: "not a regular file, or larger than 32 MiB"))
        return
      }
      self.init(content, isPlurals: path.suffix(12).elementsEqual(".stringsdict".utf8), path)
    } catch {
      self.init(error: TableError(path: path, reason: error.description))
      wasUnreadable = true
      isReplaced = error == .staleFileHandle || error == .noSuchFileOrDirectory
    }
  }

  private init(_ content: [UInt8], isPlurals: Bool, _ path: [UInt8]) {
    self.init()
    let failure: PropertyListError?
    if isPlurals {
      let parsed = PluralTable.parse(content)
      (plurals, failure) = (parsed.table, parsed.error)
    } else {
      let parsed = StringTable.parse(content)
      (strings, failure) = (parsed.table, parsed.error)
    }
    error = failure.map { TableError(path: path, reason: $0.reason, position: $0.position) }
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
