import CLibrary
import Posix

/// A layer: a directory, or a zip archive.
public enum Layer: Sendable {
  case directory(DirectoryLayer)
  case archive(ArchiveLayer)

  /// The name shown to users: an absolute path; for a folder in an archive, `ARCHIVE!/FOLDER`; with `@/FOLDER` if it is laid at
  /// a folder of the view.
  public var path: [UInt8] { laidPath.shown }

  /// The path, and the folder of the view at which the layer is laid.
  public var laidPath: LaidPath {
    switch self {
    case .directory(let layer): LaidPath(layer.path, atFolder: layer.laidAt)
    case .archive(let layer): LaidPath(layer.path, atFolder: layer.laidAt)
    }
  }

  /// The absolute path of the directory or of the archive file.
  public var backingPath: [UInt8] {
    switch self {
    case .directory(let layer): layer.path
    case .archive(let layer): layer.archivePath
    }
  }

  /// The name shown to users for an entry of the layer. What is above a layer that is laid at a folder has the layer's own.
  /// - Parameter names: from the root of the view.
  public func path(of names: [[UInt8]]) -> [UInt8] {
    var path = laidPath.path
    let own = names.dropFirst(laidPath.place.count)
    if case .archive(let layer) = self, layer.folder.isEmpty, !own.isEmpty {
      path.append(UInt8(ascii: "!"))
    }
    for name in own {
      if path.last != UInt8(ascii: "/") { path.append(UInt8(ascii: "/")) }
      path += name
    }
    return path
  }

  /// The archive, if the layer is one.
  public var archive: ArchiveLayer? { if case .archive(let layer) = self { layer } else { nil } }

  /// The folder, if the layer is one.
  public var folder: DirectoryLayer? { if case .directory(let layer) = self { layer } else { nil } }

  /// Whether its path leads nowhere, so that it has no part in the stack.
  public var isAbsent: Bool { folder?.isAbsent == true }

  /// Passes the calls on the layer.
  public var gate: LayerGate {
    switch self {
    case .directory(let layer): layer.gate
    case .archive(let layer): layer.gate
    }
  }

  /// Whether mounts inside the layer are invisible; an archive contains none.
  public var isPrivateClone: Bool {
    switch self {
    case .directory(let layer): layer.isPrivateClone
    case .archive: true
    }
  }

  /// The directory at the root of the view.
  public var root: LayerDirectory {
    switch self {
    case .directory(let layer): layer.root
    case .archive(let layer): layer.root
    }
  }

  /// The root directory of the layer itself, which is laid at a folder of the view if it is not `root`.
  public var ownRoot: LayerDirectory {
    switch self {
    case .directory(let layer): layer.ownRoot
    case .archive(let layer): layer.ownRoot
    }
  }

  /// The name of the file system if it can change without inotify(7) events on this machine; nil otherwise.
  /// - Throws: what fstatfs(2) of an archive answers.
  public func unwatchableFileSystem() throws(Errno) -> String? {
    switch self {
    case .directory(let layer): layer.unwatchableFileSystem
    case .archive(let layer): try layer.ownRoot.unwatchableFileSystem()
    }
  }

  /// Calls `statvfs(3)` for the file system that holds the layer.
  public func statvfs() throws(Errno) -> statvfs {
    switch self {
    case .directory(let layer): try layer.statvfs()
    case .archive(let layer): try layer.statvfs()
    }
  }

  /// The directory at a path inside this layer alone, without merging.
  /// - Throws: ENOENT or ENOTDIR where the layer has no such directory; `skipped`, since a lookup would find nothing.
  public func directory(at path: [[UInt8]]) throws(Errno) -> MergedDirectory {
    if gate.isSkipped { throw .skipped }
    var directory = MergedDirectory(parts: [root])
    for name in path {
      let found = try withCName(name) { name throws(Errno) in try directory.lookup(name) }
      guard case .directory(let next, _) = found else { throw .noSuchFileOrDirectory }
      directory = next
    }
    return directory
  }
}
