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
  /// The cached URL of a resource, or what the body finds. An error, as without a free descriptor, is not cached.
  func url(_ query: ResourceQuery, _ find: () throws(Errno) -> URL?) -> URL? {
    guard let cache else { return try? find() }
    let (known, ticket) = cache.find(in: self) { $0.urls[query] }
    if let known { return known }
    do throws(Errno) {
      guard let ticket, cache.watch(try infoPlistPaths(), ticket) else { return try find() }
      let url = try find()
      // The URL of a file in an archive names the scheme that is registered now.
      if url?.isFileURL != false { cache.insert(ticket) { $0.urls[query] = .some(url) } }
      return url
    } catch { return nil }
  }

  /// The cached tables of a query, or those that the body finds.
  func tables(
    _ query: TableQuery, _ find: () throws(Errno) -> [ResourceVersion]
  ) -> (tables: SearchedTables, ticket: LookupCache.Ticket?) {
    guard let cache else { return (SearchedTables((try? find()) ?? []), nil) }
    let (known, ticket) = cache.find(in: self) { $0.tables[query] }
    if let known { return (known, ticket) }
    var files: [ResourceVersion] = []
    do throws(Errno) {
      files = try find()
      guard let ticket else { return (SearchedTables(files), nil) }
      var watched: [[UInt8]]?
      for _ in 0..<4 {
        let paths = files.map { path(of: $0.path, layer: $0.layer) } + (try infoPlistPaths())
        if paths == watched {
          let tables = SearchedTables(files)
          cache.insert(ticket) { $0.tables[query] = tables }
          return (tables, ticket)
        }
        guard cache.watch(paths, ticket) else { break }
        // What was found before its files were watched may be out of date.
        watched = paths
        files = try find()
      }
    } catch {}
    return (SearchedTables(files), nil)
  }

  /// Which languages are searched depends on these files.
  private func infoPlistPaths() throws(Errno) -> [[UInt8]] {
    try lookup.infoPlistVersions().map { path(of: $0.path, layer: $0.layer) }
  }
}
