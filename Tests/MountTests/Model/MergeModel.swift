import Posix
import TestSupport

/// A directory of the merged tree, computed from plans alone: the reference model of the merge.
struct MergedDirectory {
  /// A layer's directory that is merged, topmost first.
  struct Part {
    var layer: Int
    var directory: PlannedDirectory
    /// The names from the layer's root to the directory.
    var path: [ByteString] = []
  }

  /// The path from the mount's root; empty for the root.
  var path: ByteString
  var parts: [Part]
  /// All layers, for their files.
  var stack: [PlannedLayer]

  /// The merged root of a stack, topmost layer first.
  static func root(of stack: [PlannedLayer]) -> MergedDirectory {
    var parts: [Part] = []
    for (index, layer) in stack.enumerated() {
      parts.append(Part(layer: index, directory: layer.root))
      if layer.root.isOpaque { break }
    }
    return MergedDirectory(path: "", parts: parts, stack: stack)
  }

  /// The entry with a name; nil if there is none.
  func lookup(_ name: ByteString) -> MergedEntry? {
    if stack[0].foldsNames { return foldedLookup(name) }
    // Whiteout files are never entries themselves.
    if name.hasPrefix(".wh.") { return nil }
    var found: [Part] = []
    search: for part in parts {
      switch part.directory.entries[name] {
      case .file(let index)?:
        if !found.isEmpty { return directory(name, found) }
        let isWhiteout = stack[part.layer].files[index].form.isOverlayWhiteout
        return isWhiteout ? nil : .file(layer: part.layer, index: index)
      case .directory(let directory)?:
        found.append(Part(layer: part.layer, directory: directory, path: part.path + [name]))
        if directory.isOpaque { return self.directory(name, found) }
      case nil: ()
      }
      // The file .wh.NAME hides entries in the layers below, not in its own.
      if part.directory.entries[".wh." + name] != nil { break search }
    }
    return found.isEmpty ? nil : directory(name, found)
  }

  /// The names in the listing.
  var names: Set<ByteString> {
    stack[0].foldsNames ? foldedNames : mentionedNames.filter { lookup($0) != nil }
  }

  /// The names in all parts, hidden or not.
  var mentionedNames: Set<ByteString> {
    parts.reduce(into: []) { $0.formUnion($1.directory.entries.keys) }
  }

  /// The latest mtime of the parts.
  var modified: TimeSpec {
    parts.map(\.directory.metadata.modified).max() ?? TimeSpec(seconds: 0, nanoseconds: 0)
  }

  func directory(_ name: ByteString, _ parts: [Part]) -> MergedEntry {
    .directory(MergedDirectory(path: path / name, parts: parts, stack: stack))
  }
}

/// An entry of a merged directory.
enum MergedEntry {
  /// A file, by its index in the layer.
  case file(layer: Int, index: Int)
  case directory(MergedDirectory)
}

extension PlannedDirectory {
  /// Whether the directory hides those in the layers below.
  var isOpaque: Bool { !opaqueMarkers.isEmpty || entries[".wh..wh..opq"] != nil }
}
