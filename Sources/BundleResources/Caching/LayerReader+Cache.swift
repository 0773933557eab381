import Bundles
import Foundation
import Posix

/// A resource that was asked for by `LayeredBundle.url(forResource:withExtension:subdirectory:localization:)`.
struct ResourceQuery: Hashable {
  let name: String
  let ext: String?
  let subpath: String?
  let localization: String?
}

extension LayerReader {
  /// The cached URL of a resource, or what the body finds.
  func url(_ query: ResourceQuery, _ find: () -> URL?) -> URL? {
    guard let cache else { return find() }
    let (known, ticket) = cache.find(in: self) { $0.urls[query] }
    if let known { return known }
    guard let ticket, cache.watch(infoPlistPaths(), ticket) != nil else { return find() }
    let url = find()
    // The URL of a file in an archive names the scheme that is registered now.
    if url?.isFileURL != false { cache.insert(ticket) { $0.urls[query] = .some(url) } }
    return url
  }

  /// The cached tables of a query, or those that the body finds.
  func tables(
    _ query: TableQuery, _ find: () -> [ResourceVersion]
  ) -> (tables: SearchedTables, ticket: LookupCache.Ticket?) {
    guard let cache else { return (SearchedTables(find()), nil) }
    let (known, ticket) = cache.find(in: self) { $0.tables[query] }
    if let known { return (known, ticket) }
    var files = find()
    guard let ticket else { return (SearchedTables(files), nil) }
    // What was found before a file was watched may be out of date.
    for _ in 0..<4 {
      let paths = files.map { path(of: $0.path, layer: $0.layer) } + infoPlistPaths()
      guard let isNew = cache.watch(paths, ticket) else { break }
      if isNew {
        files = find()
        continue
      }
      let tables = SearchedTables(files)
      cache.insert(ticket) { $0.tables[query] = tables }
      return (tables, ticket)
    }
    return (SearchedTables(files), nil)
  }

  /// Which languages are searched depends on these files.
  private func infoPlistPaths() -> [[UInt8]] {
    ((try? lookup.infoPlistVersions()) ?? []).map { path(of: $0.path, layer: $0.layer) }
  }
}
