import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// A layer of an archive in a temporary directory.
final class ArchiveFixture {
  let folder: TemporaryFolder
  let path: ByteString
  let layer: ArchiveLayer
  let cache: ContentCache

  convenience init(
    _ entries: [ZipBuilder.Entry], inside: [ByteString] = [], budget: Int = ContentCache.defaultBudget,
    threads: Int = 0, encoding: String? = nil, _ change: (inout ZipBuilder) -> Void = { _ in }
  ) throws {
    var builder = ZipBuilder(entries)
    change(&builder)
    try self.init(
      archive: builder.bytes, inside: inside, budget: budget, threads: threads,
      encoding: encoding)
  }

  init(
    archive: [UInt8], inside: [ByteString] = [], budget: Int = ContentCache.defaultBudget, threads: Int = 0,
    passwords: [[UInt8]] = [], encoding: String? = nil
  ) throws {
    folder = try TemporaryFolder()
    path = folder / "archive.zip"
    try path.write(archive)
    cache = ContentCache(budget: budget, passwords: passwords)
    if threads > 0 { try cache.start(threads: threads) }
    layer = try ArchiveLayer(
      archivePath: path.bytes, folder: inside.map(\.bytes), encoding: encoding.flatMap { NameEncoding($0) },
      index: 0, cache: cache)
  }

  deinit { cache.stop() }

  /// Evicts all contents: one that a thread decodes ahead of its reader stays until the thread stops.
  func evictAll() throws {
    let isEmpty = eventually(within: 60) {
      cache.evictAll()
      return cache.statistics.contents == 0
    }
    try #require(isEmpty)
  }

  var stack: LayerStack { LayerStack(layers: [.archive(layer)]) }

  /// The entry at a path.
  func entry(_ path: String) throws -> Entry? {
    var names = path.split(separator: "/").map { Array($0.utf8) }
    guard let last = names.popLast() else { return nil }
    let folder = try stack.directory(at: names)
    return try withCName(last) { name throws(Errno) in try folder.lookup(name) }
  }

  func attributes(_ path: String) throws -> FileStatus {
    switch try #require(try entry(path), "\(path)") {
    case .directory(_, let attributes): return attributes
    case .file(_, let attributes): return attributes
    }
  }

  func open(_ path: String) throws -> LayerFile {
    var names = path.split(separator: "/").map { Array($0.utf8) }
    let last = names.removeLast()
    let folder = try Layer.archive(layer).directory(at: names).top
    let identity = try attributes(path).identity
    return try withCName(last) { name throws(Errno) in try folder.openFile(name, identity: identity) }
  }

  func content(_ path: String) throws -> [UInt8] { try open(path).readAll() }

  func text(_ path: String) throws -> String { String(decoding: try content(path), as: UTF8.self) }

  /// All paths; those of folders end with a slash.
  func paths() throws -> [String] {
    var found: [String] = []
    func walk(_ directory: MergedDirectory, _ prefix: String) throws {
      let listing = try directory.list()
      for item in listing.items {
        let name = listing.name(of: item)
        let path = prefix + String(decoding: name, as: UTF8.self)
        let entry = try withCName(name) { name throws(Errno) in try directory.lookup(name) }
        if case .directory(let inner, _) = entry {
          found.append(path + "/")
          try walk(inner, path + "/")
        } else {
          found.append(path)
        }
      }
    }
    try walk(stack.root(), "")
    return found.sorted()
  }

  /// How many names were skipped, by reason.
  var skipped: [SkipReason: Int] {
    Dictionary(uniqueKeysWithValues: layer.statistics.skipped.map { ($0.reason, $0.count) })
  }
}
