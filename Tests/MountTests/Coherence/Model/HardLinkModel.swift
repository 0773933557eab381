import Posix
import TestSupport

/// Predicts which link counts the mount can know.
///
/// inotify reports a new or removed hard link only in the link's directory. If that directory was never looked up
/// through the mount, the daemon does not watch it and the file's link count becomes uncertain.
struct HardLinkModel {
  private struct EntryKey: Hashable {
    var layer: Int
    var path: [ByteString]
  }

  /// The layers' directories that the last full walk visited and that have not moved since.
  private var visited: Set<EntryKey> = []
  /// The files with several names at the last full walk.
  private var linked: Set<TreeComparison.Identity> = []
  /// The files whose links changed in an unvisited directory.
  private(set) var uncertain: Set<TreeComparison.Identity> = []

  /// Call this after a walk over the whole mount.
  mutating func recordFullWalk(_ layers: [LiveLayer]) {
    let stack = layers.map(\.plan)
    visited = []
    collect(MergedDirectory.root(of: stack))
    linked = []
    for (layer, plan) in stack.enumerated() {
      for (index, count) in plan.links where count > 1 { linked.insert(.file(layer: layer, index: index)) }
    }
  }

  /// Entries at a path or below it may have been replaced, in any layer.
  mutating func forget(below path: [ByteString]) {
    let keys = path.map(FoldedNames.key)
    visited = visited.filter {
      !$0.path.starts(with: path) && !$0.path.map(FoldedNames.key).starts(with: keys)
    }
  }

  /// Names at a path or below it are about to appear or vanish.
  mutating func willChangeLinks(below path: [ByteString], in layer: Int, _ layers: [LiveLayer]) {
    guard let entry = layers[layer].entry(path) else { return }
    var changed = [(path: path, entry: entry)]
    if case .directory(let directory) = entry { changed += directory.entriesBelow(path) }
    let links = layers[layer].plan.links
    for (path, entry) in changed {
      guard case .file(let index) = entry, (links[index] ?? 0) > 1 else { continue }
      willChangeLinks(of: index, in: Array(path.dropLast()), layer, layers)
    }
  }

  /// A name of a file is about to appear or vanish in a directory.
  mutating func willChangeLinks(
    of index: Int, in directory: [ByteString], _ layer: Int, _ layers: [LiveLayer]
  ) {
    if !isVisible(directory, layer, layers) { uncertain.insert(.file(layer: layer, index: index)) }
  }

  /// Whether the mount notices a change to the file under this name wherever the file appears.
  func isChangeNoticed(_ path: [ByteString], of index: Int, _ layer: Int, _ layers: [LiveLayer]) -> Bool {
    if layers[layer].names(of: index).count == 1 || isVisible(Array(path.dropLast()), layer, layers) {
      return true
    }
    let identity = TreeComparison.Identity.file(layer: layer, index: index)
    // For a file with several names at the last walk, the daemon expects changes under the other names.
    return linked.contains(identity) && !uncertain.contains(identity)
  }

  private func isVisible(_ directory: [ByteString], _ layer: Int, _ layers: [LiveLayer]) -> Bool {
    guard visited.contains(EntryKey(layer: layer, path: directory)) else { return false }
    var merged = MergedDirectory.root(of: layers.map(\.plan))
    for name in directory {
      guard case .directory(let inner)? = merged.lookup(name) else { return false }
      merged = inner
    }
    // A layer's directory of another spelling may be the one that is merged.
    return merged.parts.contains { $0.layer == layer && $0.path == directory }
  }

  private mutating func collect(_ directory: MergedDirectory) {
    for part in directory.parts { visited.insert(EntryKey(layer: part.layer, path: part.path)) }
    for name in directory.names {
      if case .directory(let inner)? = directory.lookup(name) { collect(inner) }
    }
  }
}
