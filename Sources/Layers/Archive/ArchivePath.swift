import CLibrary
import Posix
import RemoteFiles

/// A path that names an archive, a directory inside one, or the same of an archive that is stored in another:
/// `ARCHIVE`, `ARCHIVE!/DIRECTORY` or `ARCHIVE!/ARCHIVE!/DIRECTORY`. The outermost archive may be a URL of a web server.
public struct ArchivePath: Sendable {
  /// The path of the outermost archive.
  public let archive: [UInt8]
  private let directory: [[UInt8]]

  /// Asks the file system. An existing file with the whole name takes precedence over `!` as a separator.
  /// - Returns: nil if the path leads to no regular file.
  public init?(_ path: [UInt8]) {
    if RemoteURL.isURL(path) {
      self.init(path, archiveLength: RemoteURL.end(of: path))
      return
    }
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
  public init(_ path: [UInt8], archiveLength length: Int) {
    archive = Array(path[..<length])
    directory = Self.split(path[length...].dropFirst())
  }

  /// Opens the layer.
  /// - Parameters:
  ///   - index: in the stack.
  ///   - id: as of `ArchiveLayer.init`.
  ///   - hidden: as of `ArchiveLayer.init`.
  ///   - place: as of `ArchiveLayer.init`.
  ///   - progress: as of `ArchiveLayer.init`.
  public func open(
    index: Int, id: LayerID? = nil, _ encoding: NameEncoding?, _ contents: ContentCache,
    foldsNames: Bool = false, hidden: HiddenNames? = nil, at place: [[UInt8]] = [],
    progress: (UInt64, UInt64) -> Void
  ) throws(ArchiveError) -> ArchiveLayer {
    let path: [UInt8]
    do throws(Errno) { path = RemoteURL.isURL(archive) ? archive : try realPath(archive) } catch {
      // A predecessor may have had it open.
      guard contents.registry != nil else { throw .unreadable(error) }
      path = archive
    }
    func open(_ inner: [[[UInt8]]], _ directory: [[UInt8]]) throws(ArchiveError) -> ArchiveLayer {
      try ArchiveLayer(
        archivePath: path, inner: inner, folder: directory, encoding: encoding, index: index, id: id,
        cache: contents, foldsNames: foldsNames, hidden: hidden, at: place, progress: progress)
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

  /// The names of a path, without `.`.
  private static func split(_ path: ArraySlice<UInt8>) -> [[UInt8]] {
    path.split(separator: EntryName.slash).filter { !$0.elementsEqual(".".utf8) }.map { Array($0) }
  }

  private static func kind(of path: [UInt8]) -> FileKind? {
    path.contains(0) ? nil : try? Descriptor.open(path, [.pathOnly]).attributes().kind
  }
}
