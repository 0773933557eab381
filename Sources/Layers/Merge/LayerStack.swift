import Posix

/// The layers of a mount, top first: the substitution directories in order, then MAIN.
public struct LayerStack: Sendable {
  /// The layers, top first; never empty.
  public let layers: [Layer]

  /// Stacks layers.
  /// - Parameter layers: top first, at least one, each with its place as its index.
  public init(layers: [Layer]) {
    precondition(!layers.isEmpty, "a stack has at least its main layer")
    self.layers = layers
  }

  /// Stacks layers that are all directories.
  public init(layers: [DirectoryLayer]) { self.init(layers: layers.map { Layer.directory($0) }) }

  /// The merged directory of the layers' roots, as their marks are now.
  public func root() throws(Errno) -> MergedDirectory {
    var parts: [LayerDirectory] = []
    for layer in layers {
      let root = layer.root
      parts.append(root)
      if root.layer < layers.count - 1, try root.isOpaque() { break }
    }
    return MergedDirectory(parts: parts)
  }

  /// The merged directory at a path of entry names from the root, as it is now.
  /// - Throws: ENOENT where there is none; ENOTDIR where another kind of file has the path.
  public func directory(at path: [[UInt8]]) throws(Errno) -> MergedDirectory {
    var directory = try root()
    for name in path {
      let entry = try withCName(name) { name throws(Errno) in try directory.lookup(name) }
      switch entry {
      case .directory(let next, _): directory = next
      case .file: throw .notDirectory
      case nil: throw .noSuchFileOrDirectory
      }
    }
    return directory
  }
}
