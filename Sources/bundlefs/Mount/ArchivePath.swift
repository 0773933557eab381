import Glibc
import Layers
import Posix

/// A path that names an archive, a directory inside one, or the same of an archive that is stored in another:
/// `ARCHIVE`, `ARCHIVE!/DIRECTORY` or `ARCHIVE!/ARCHIVE!/DIRECTORY`.
struct ArchivePath {
  /// The path of the outermost archive.
  let archive: [UInt8]
  private let directory: [[UInt8]]

  /// An existing file with the whole name takes precedence over `!` as a separator.
  init?(_ path: [UInt8]) {
    if let kind = Self.kind(of: path) {
      guard kind == .regular else { return nil }
      self.init(path, archiveLength: path.count)
      return
    }
    let (separator, slash) = (UInt8(ascii: "!"), UInt8(ascii: "/"))
    for index in path.indices where path[index] == separator {
      let rest = path[(index + 1)...]
      guard index > 0, rest.isEmpty || rest.first == slash, Self.kind(of: Array(path[..<index])) == .regular
      else { continue }
      self.init(path, archiveLength: index)
      return
    }
    return nil
  }

  /// A path that was recorded. Asks no file system.
  /// - Parameter length: of the archive's path, which nothing or `!` follows.
  init(_ path: [UInt8], archiveLength length: Int) {
    archive = Array(path[..<length])
    directory = MountPoint.split(path[length...].dropFirst())
  }

  /// - Parameters:
  ///   - index: in the stack.
  ///   - id: as of `ArchiveLayer.init`.
  func open(index: Int, id: Int, _ encoding: NameEncoding?, _ contents: ContentCache) throws(ArchiveError)
    -> ArchiveLayer
  {
    let path: [UInt8]
    do throws(Errno) { path = try realPath(archive) } catch {
      // A predecessor may have had it open.
      guard contents.registry != nil else { throw .unreadable(error) }
      path = archive
    }
    var bar = ProgressBar(title: "reading \(archive.shown)")
    defer { bar.end() }
    func open(_ inner: [[[UInt8]]], _ directory: [[UInt8]]) throws(ArchiveError) -> ArchiveLayer {
      try ArchiveLayer(
        archivePath: path, inner: inner, folder: directory, encoding: encoding, index: index, id: id,
        cache: contents, progress: { bar.show($0, of: $1) })
    }
    // A directory of the whole name takes precedence over archives within the archive.
    do throws(ArchiveError) { return try open([], directory) } catch .noFolder {
      let (inner, rest) = Self.innerArchives(of: directory)
      return try open(inner, rest)
    }
  }

  /// Splits the names after each that ends with `!`.
  private static func innerArchives(of names: [[UInt8]]) -> (inner: [[[UInt8]]], directory: [[UInt8]]) {
    var (inner, rest): ([[[UInt8]]], [[UInt8]]) = ([], [])
    for name in names {
      let isArchive = name.count > 1 && name.last == UInt8(ascii: "!")
      rest.append(isArchive ? name.dropLast() : name)
      if isArchive {
        inner.append(rest)
        rest = []
      }
    }
    return (inner, rest)
  }

  private static func kind(of path: [UInt8]) -> FileKind? {
    path.contains(0) ? nil : try? Descriptor.open(path, [.pathOnly]).attributes().kind
  }
}
