import Posix
import TestSupport

/// Turns a stack of layers into one layer that shows the same tree.
struct FlattenedStack {
  private struct FileKey: Hashable {
    let layer: Int
    let index: Int
  }

  private let stack: [PlannedLayer]
  private var result: PlannedLayer
  /// Whether hard links of one layer stay hard links; those of the topmost do.
  private let keepsLinks: Bool
  /// The files that have been added.
  private var known: [FileKey: Int] = [:]

  static func flatten(_ stack: [PlannedLayer], keepsLinks: Bool = true) -> PlannedLayer {
    let root = MergedDirectory.root(of: stack)
    var flattened = FlattenedStack(
      stack: stack, result: PlannedLayer(root: stack[0].root), keepsLinks: keepsLinks)
    flattened.result.root = flattened.directory(root)
    return flattened.result
  }

  private init(stack: [PlannedLayer], result: PlannedLayer, keepsLinks: Bool) {
    (self.stack, self.result, self.keepsLinks) = (stack, result, keepsLinks)
  }

  private mutating func directory(_ merged: MergedDirectory) -> PlannedDirectory {
    var directory = PlannedDirectory(metadata: merged.parts[0].directory.metadata)
    directory.metadata.modified = merged.modified
    for name in merged.names {
      switch merged.lookup(name) {
      case .directory(let inner)?: directory.entries[name] = .directory(self.directory(inner))
      case .file(let layer, let index)?:
        directory.entries[name] = .file(file(FileKey(layer: layer, index: index)))
      case nil: ()
      }
    }
    return directory
  }

  private mutating func file(_ key: FileKey) -> Int {
    if keepsLinks || key.layer == 0, let index = known[key] { return index }
    result.files.append(stack[key.layer].files[key.index])
    known[key] = result.files.count - 1
    return result.files.count - 1
  }
}
