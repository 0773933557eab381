import Glibc
import Layers
import Posix

/// A path that names an archive, or a directory inside one: `ARCHIVE` or `ARCHIVE!/DIRECTORY`.
struct ArchivePath {
  private let archive: [UInt8]
  private let directory: [[UInt8]]

  /// An existing file with the whole name takes precedence over `!` as a separator.
  init?(_ path: [UInt8]) {
    if let kind = Self.kind(of: path) {
      guard kind == .regular else { return nil }
      (archive, directory) = (path, [])
      return
    }
    let (separator, slash) = (UInt8(ascii: "!"), UInt8(ascii: "/"))
    for index in path.indices where path[index] == separator {
      let rest = path[(index + 1)...]
      guard index > 0, rest.isEmpty || rest.first == slash, Self.kind(of: Array(path[..<index])) == .regular
      else { continue }
      archive = Array(path[..<index])
      directory = rest.split(separator: slash).map { Array($0) }.filter { $0 != [UInt8(ascii: ".")] }
      return
    }
    return nil
  }

  func open(index: Int, _ encoding: NameEncoding?, _ contents: ContentCache) throws(ArchiveError)
    -> ArchiveLayer
  {
    let path: [UInt8]
    do throws(Errno) { path = try realPath(archive) } catch { throw .unreadable(error) }
    var bar = ProgressBar(title: "reading \(archive.shown)")
    defer { bar.end() }
    return try ArchiveLayer(
      archivePath: path, folder: directory, encoding: encoding, index: index, cache: contents,
      progress: { bar.show($0, of: $1) })
  }

  private static func kind(of path: [UInt8]) -> FileKind? {
    path.contains(0) ? nil : try? Descriptor.open(path, [.pathOnly]).attributes().kind
  }
}
