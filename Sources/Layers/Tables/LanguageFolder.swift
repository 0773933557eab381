import CLibrary
import Posix

/// Of a folder for one language, such as `fr.lproj`: the language, and the folder above, whose catalogs of strings contribute
/// to the tables in this one.
struct LanguageFolder: Sendable {
  private let above: MergedDirectory
  let language: [UInt8]

  /// - Returns: nil for other folders, for those inside another one, and if tables are not merged.
  init?(_ name: CName, length: Int, in above: MergedDirectory) {
    guard
      let language = TableName.language(ofFolder: name, length: length, foldsNames: above.foldsNames),
      above.top.gate.tables != nil, above.languageFolder == nil
    else { return nil }
    (self.above, self.language) = (above, language)
  }

  /// Puts the catalogs among the tables of a name: in each layer they follow the table, as in a lookup by `BundleResources`.
  /// - Parameter tables: the topmost first.
  func addingCatalogs(
    to tables: [MergedTables.Contributor], named name: [UInt8]
  ) throws(Errno) -> [MergedTables.Contributor] {
    let bytes = TableName.catalog(ofTable: name)
    let catalogs = try withCName(bytes) { name throws(Errno) in
      try above.contributors(name, bytes, from: 0, top: nil, language: language)
    }
    if catalogs.isEmpty { return tables }
    var (all, rest) = ([MergedTables.Contributor](), tables[...])
    for catalog in catalogs {
      while let table = rest.first, table.directory.layer <= catalog.directory.layer {
        all.append(table)
        rest.removeFirst()
      }
      all.append(catalog)
    }
    return all + rest
  }
}
