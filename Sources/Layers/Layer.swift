import Glibc
import Posix

/// A layer: a directory, or a zip archive.
public enum Layer: Sendable {
  case directory(DirectoryLayer)
  case archive(ArchiveLayer)

  /// The name of the layer for users: an absolute path; for a folder of an archive the archive's, `!/`, and
  /// the folder's.
  public var path: [UInt8] {
    switch self {
    case .directory(let layer): layer.path
    case .archive(let layer): layer.path
    }
  }

  /// The path of the directory or the archive in the file system.
  public var backingPath: [UInt8] {
    switch self {
    case .directory(let layer): layer.path
    case .archive(let layer): layer.archivePath
    }
  }

  /// The name for users of what has these names in the layer.
  public func path(of names: [[UInt8]]) -> [UInt8] {
    var path = self.path
    if case .archive(let layer) = self, layer.folder.isEmpty, !names.isEmpty {
      path.append(UInt8(ascii: "!"))
    }
    for name in names {
      if path.last != UInt8(ascii: "/") { path.append(UInt8(ascii: "/")) }
      path += name
    }
    return path
  }

  /// The archive, if it is one.
  public var archive: ArchiveLayer? { if case .archive(let layer) = self { layer } else { nil } }

  /// Whether mounts inside the layer are out of sight; there are none in an archive.
  public var isPrivateClone: Bool {
    switch self {
    case .directory(let layer): layer.isPrivateClone
    case .archive: true
    }
  }

  /// The directory that the layer is.
  public var root: LayerDirectory {
    switch self {
    case .directory(let layer): layer.root
    case .archive(let layer): layer.root
    }
  }

  /// Figures of the file system that holds the layer.
  public func statvfs() throws(Errno) -> statvfs {
    switch self {
    case .directory(let layer): try layer.statvfs()
    case .archive(let layer): try layer.statvfs()
    }
  }

  /// The directory at a path inside this layer alone, by its own entries, whatever other layers say.
  /// - Throws: ENOENT or ENOTDIR where the layer has no such directory.
  public func directory(at path: [[UInt8]]) throws(Errno) -> LayerDirectory {
    var directory = root
    for name in path {
      let found = try withCName(name) { name throws(Errno) in try directory.find(name) }
      guard case .directory(let next, _) = found else { throw .noSuchFileOrDirectory }
      directory = next
    }
    return directory
  }
}
