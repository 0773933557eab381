import Layers
import Posix

/// The languages of a catalog, such as `Localizable.xcstrings`.
public struct CatalogLanguages: Sendable {
  /// Those that have strings.
  public let languages: [[UInt8]]
  /// The one of the keys; nil if the catalog has none.
  public let source: [UInt8]?

  /// Creates a value.
  public init(languages: [[UInt8]], source: [UInt8]?) { (self.languages, self.source) = (languages, source) }
}

/// The names of the files that a table of strings may have.
public struct TableNames: Sendable {
  /// Those of one language, best first.
  public let tables: [[UInt8]]
  /// Those of several languages, which follow.
  public let catalogs: [[UInt8]]

  /// Creates a value.
  public init(tables: [[UInt8]], catalogs: [[UInt8]]) { (self.tables, self.catalogs) = (tables, catalogs) }
}

/// A version of a table and its place in the search.
private struct PlacedVersion {
  let version: ResourceVersion
  /// The place of the language. Spellings of one language have the same.
  let language: Int
  /// The place among the files of a layer and a language.
  let order: Int

  func place(_ first: ResourceOptions.StringOrder) -> (Int, Int, Int, Int) {
    let isLast = version.part == .source ? 1 : 0
    return first == .layer
      ? (isLast, version.layer, language, order) : (isLast, language, version.layer, order)
  }
}

extension ResourceLookup {
  /// Finds the tables of strings in all layers and in all folders that a lookup searches, in the order of the search. What
  /// a whiteout or an opaque directory hides is not found.
  ///
  /// Each layer is searched whole before the next; or each language, if the options say so. Catalogs are in the unlocalized
  /// folder or in `mul.lproj`. Each occurs once for each language of the search that it has, and once more at the end of the
  /// whole search, for its source language.
  /// - Parameters:
  ///   - names: the names of the files, without variants.
  ///   - folder: the names below the resource folder.
  ///   - only: If given, only these localizations, their parents and the unlocalized folder are searched.
  ///   - languages: the languages of a catalog; nil if it cannot be read, which the search then meets.
  public func tables(
    _ names: TableNames, in folder: [[UInt8]] = [], only: [[UInt8]]? = nil,
    languages: (ResourceVersion) -> CatalogLanguages?
  ) throws(Errno) -> [ResourceVersion] {
    guard folder.allSatisfy(ResourceFolders.isEntryName) else { return [] }
    let layout = try layout()
    guard let folders = try ResourceFolders(of: stack, layout: layout, subfolder: folder, for: .unrestricted)
    else { return [] }
    let catalogs = try catalogs(names.catalogs, in: folders).map { ($0, languages($0)) }
    let others = catalogs.flatMap { $0.1?.languages ?? [] }
    let localizations =
      if let only { only.flatMap(Language.fallbacks) } else {
        try localizations(only: nil, layout: layout, others: others)
      }
    let searched = SearchedLanguages(localizations)
    var placed = try tables(names.tables, in: folders, searched)
    for (catalog, languages) in catalogs {
      placed += Self.parts(of: catalog, languages, searched, isRestricted: only != nil, placed.count)
    }
    let first = options.stringOrder
    return placed.sorted { $0.place(first) < $1.place(first) }.map(\.version)
  }

  private func catalogs(
    _ names: [[UInt8]], in folders: ResourceFolders
  ) throws(Errno) -> [ResourceVersion] {
    var catalogs: [ResourceVersion] = []
    for folder in try folders.all(localizations: [Array("mul".utf8)]) {
      for name in names where ResourceFolders.isEntryName(name) {
        for (file, layer) in try folder.path.versions(of: name) {
          catalogs.append(ResourceVersion(file, layer: layer, localization: nil))
        }
      }
    }
    return catalogs
  }

  private func tables(
    _ names: [[UInt8]], in folders: ResourceFolders, _ searched: SearchedLanguages
  ) throws(Errno) -> [PlacedVersion] {
    var tables: [PlacedVersion] = []
    var known: Set<[[UInt8]]> = []
    for folder in try folders.all(localizations: searched.names)
    where known.insert(folder.path.names).inserted {
      for name in names where ResourceFolders.isEntryName(name) {
        for (file, layer) in try folder.path.versions(of: name) {
          let version = ResourceVersion(file, layer: layer, localization: folder.localization)
          let language = folder.localization.flatMap { searched.place(of: $0) } ?? 0
          tables.append(PlacedVersion(version: version, language: language, order: tables.count))
        }
      }
    }
    return tables
  }

  private static func parts(
    of catalog: ResourceVersion, _ languages: CatalogLanguages?, _ searched: SearchedLanguages,
    isRestricted: Bool, _ order: Int
  ) -> [PlacedVersion] {
    guard let languages else { return [PlacedVersion(version: catalog, language: 0, order: order)] }
    var parts = languages.languages.compactMap { language in
      searched.place(of: language).map { place in
        let part = ResourceVersion(catalog, localization: language, part: .language)
        return PlacedVersion(version: part, language: place, order: order)
      }
    }
    if let source = languages.source, !isRestricted || searched.place(of: source) != nil {
      let part = ResourceVersion(catalog, localization: source, part: .source)
      parts.append(PlacedVersion(version: part, language: 0, order: order))
    }
    return parts
  }
}

/// The localizations of a search, in order.
private struct SearchedLanguages {
  let names: [[UInt8]]
  /// By the name in canonical case with hyphens; unlocalized tables have the place 0.
  private var places: [[UInt8]: Int] = [:]

  init(_ names: [[UInt8]]) {
    self.names = names
    for (index, name) in names.enumerated() {
      let key = Self.key(name)
      if places[key] == nil { places[key] = index + 1 }
    }
  }

  func place(of localization: [UInt8]) -> Int? { places[Self.key(localization)] }

  private static func key(_ name: [UInt8]) -> [UInt8] {
    Array(Language.canonicalSubtags(of: name).joined(separator: CollectionOfOne(UInt8(ascii: "-"))))
  }
}
