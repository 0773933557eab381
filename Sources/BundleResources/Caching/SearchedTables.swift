import Bundles
import Layers
import Posix
import StringTables

/// A table that a search has reached. A class, so that a search copies no dictionaries.
final class ReachedTable: Sendable {
  let content: ParsedTables
  /// The language of its plural forms.
  let language: String

  init(_ content: ParsedTables, language: String) { (self.content, self.language) = (content, language) }
}

/// A table was replaced or removed after it was found.
struct TableReplaced: Error, Equatable {
  private let identity: FileIdentity
  private let modified: TimeSpec
  private let changed: TimeSpec

  init(_ found: FileStatus) {
    (identity, modified, changed) = (found.identity, found.modified, found.changed)
  }
}

/// The tables of a query in the order of the search. Those behind the last one that was reached are not parsed yet.
struct SearchedTables: Sendable {
  /// All of them.
  let files: [ResourceVersion]
  /// The first of them.
  private(set) var reached: [ReachedTable] = []

  init(_ files: [ResourceVersion]) { self.files = files }

  /// The first result that the body has for a table.
  /// - Parameters:
  ///   - parse: reads a table, when the search has reached it.
  ///   - didParse: is called at the end of a search that has reached further tables.
  /// - Throws: what `parse` throws.
  func first<Result>(
    parse: (ResourceVersion) throws(TableReplaced) -> ReachedTable, didParse: (SearchedTables) -> Void,
    _ body: (ReachedTable) -> Result?
  ) throws(TableReplaced) -> Result? {
    for table in reached {
      if let result = body(table) { return result }
    }
    if reached.count == files.count { return nil }
    var all = self
    var result: Result?
    for file in files[reached.count...] where result == nil {
      let table = all.isCovered(file) ? ReachedTable(ParsedTables(), language: "") : try parse(file)
      all.reached.append(table)
      result = body(table)
    }
    if !all.reached.contains(where: \.content.wasUnreadable) { didParse(all) }
    return result
  }

  /// Whether a complete table hides a table of a layer below, or what a catalog has in the same language.
  private func isCovered(_ file: ResourceVersion) -> Bool {
    zip(reached, files).contains { table, complete in
      guard table.content.isComplete else { return false }
      if file.part == .whole { return file.path == complete.path && file.layer > complete.layer }
      guard let language = complete.localization, let other = file.localization else { return false }
      return file.layer >= complete.layer
        && StringCatalog.key(ofLanguage: language) == StringCatalog.key(ofLanguage: other)
    }
  }
}
