import Posix
import TestSupport

/// What of a layer's hard links the mount can know.
///
/// The kernel tells of a new or removed hard link only where the link is: in a directory that the mount was
/// never asked about, nobody hears of it. Files of which that is so are left out of some comparisons.
struct HardLinkModel {
  private struct EntryKey: Hashable {
    var layer: Int
    var path: [ByteString]
  }

  /// The directories of layers that took part in the mount when all of it was last looked at, as far as they
  /// are still where they were. At first it was not looked at.
  private var seen: Set<EntryKey> = []
  /// The files with several names, when the mount was last looked at.
  private var linked: Set<TreeComparison.Identity> = []
  /// The files of which a link came or went out of sight.
  private(set) var doubts: Set<TreeComparison.Identity> = []

  /// The whole mount has been looked at just now.
  mutating func lookedAtAll(_ layers: [LiveLayer]) {
    let stack = layers.map(\.plan)
    seen = []
    collect(MergedDirectory.root(of: stack), [])
    linked = []
    for (layer, plan) in stack.enumerated() {
      for (index, count) in plan.links where count > 1 { linked.insert(.file(layer: layer, index: index)) }
    }
  }

  /// What stands at a path, in any layer, and below it may from now on be another thing.
  mutating func forget(below path: [ByteString]) {
    seen = seen.filter { !$0.path.starts(with: path) }
  }

  /// Names at a path or below it come or go.
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

  /// A name of a file comes or goes in a directory.
  mutating func willChangeLinks(
    of index: Int, in directory: [ByteString], _ layer: Int, _ layers: [LiveLayer]
  ) {
    if !isSeen(directory, layer, layers) { doubts.insert(.file(layer: layer, index: index)) }
  }

  /// Whether a change to the file itself by this name can be noticed wherever the file is seen.
  func isChangeSeen(_ path: [ByteString], of index: Int, _ layer: Int, _ layers: [LiveLayer]) -> Bool {
    if layers[layer].names(of: index).count == 1 || isSeen(Array(path.dropLast()), layer, layers) {
      return true
    }
    let identity = TreeComparison.Identity.file(layer: layer, index: index)
    // Of a file that had several names when it was looked at, the mount knows that it has to be careful.
    return linked.contains(identity) && !doubts.contains(identity)
  }

  private func isSeen(_ directory: [ByteString], _ layer: Int, _ layers: [LiveLayer]) -> Bool {
    guard seen.contains(EntryKey(layer: layer, path: directory)) else { return false }
    var merged = MergedDirectory.root(of: layers.map(\.plan))
    for name in directory {
      guard case .directory(let inner)? = merged.lookup(name) else { return false }
      merged = inner
    }
    return merged.parts.contains { $0.layer == layer }
  }

  private mutating func collect(_ directory: MergedDirectory, _ path: [ByteString]) {
    for part in directory.parts { seen.insert(EntryKey(layer: part.layer, path: path)) }
    for name in directory.names {
      if case .directory(let inner)? = directory.lookup(name) { collect(inner, path + [name]) }
    }
  }
}
