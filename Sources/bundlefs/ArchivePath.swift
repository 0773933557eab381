import Glibc
import Layers
import Posix

/// A layer's name that leads to an archive: its path, or its path, `!/` and a folder inside.
struct ArchivePath {
  private let archive: [UInt8]
  private let folder: [[UInt8]]

  /// - Returns: nil for anything else; what is there under its very name counts first.
  init?(_ given: [UInt8]) {
    if let kind = Self.kind(of: given) {
      guard kind == .regular else { return nil }
      (archive, folder) = (given, [])
      return
    }
    let (mark, slash) = (UInt8(ascii: "!"), UInt8(ascii: "/"))
    for place in given.indices where given[place] == mark {
      let rest = given[(place + 1)...]
      guard place > 0, rest.isEmpty || rest.first == slash, Self.kind(of: Array(given[..<place])) == .regular
      else { continue }
      archive = Array(given[..<place])
      folder = rest.split(separator: slash).map { Array($0) }.filter { $0 != [UInt8(ascii: ".")] }
      return
    }
    return nil
  }

  /// Opens the layer; on a terminal a bar shows how far, if it takes long.
  func open(index: Int, _ contents: ContentCache) throws(ArchiveError) -> ArchiveLayer {
    let path: [UInt8]
    do throws(Errno) { path = try realPath(archive) } catch { throw .unreadable(error) }
    var bar = ProgressBar(title: "reading \(archive.shown)")
    defer { bar.end() }
    return try ArchiveLayer(
      archivePath: path, folder: folder, index: index, cache: contents, progress: { bar.show($0, of: $1) })
  }

  private static func kind(of path: [UInt8]) -> FileKind? {
    if path.contains(0) { return nil }
    return try? withCName(path) { name throws(Errno) in
      try Descriptor.open(name, [.pathOnly]).attributes().kind
    }
  }
}
