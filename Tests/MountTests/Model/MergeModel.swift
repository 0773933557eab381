import Posix
import TestSupport

/// The contract of the merge, as values: it works on plans alone and knows nothing of any implementation.
struct MergedDirectory {
  /// A layer's directory that takes part; the strongest comes first.
  struct Part {
    var layer: Int
    var directory: PlannedDirectory
  }

  /// The path from the mount's root, empty for the root itself.
  var path: ByteString
  var parts: [Part]
  /// All layers, for their files.
  var stack: [PlannedLayer]

  /// The root of a stack, the strongest layer first.
  static func root(of stack: [PlannedLayer]) -> MergedDirectory {
    var parts: [Part] = []
    for (index, layer) in stack.enumerated() {
      parts.append(Part(layer: index, directory: layer.root))
      if layer.root.isOpaque { break }
    }
    return MergedDirectory(path: "", parts: parts, stack: stack)
  }

  /// What a name of this directory is; nil: there is no such entry.
  func lookup(_ name: ByteString) -> MergedEntry? {
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
        found.append(Part(layer: part.layer, directory: directory))
        if directory.isOpaque { return self.directory(name, found) }
      case nil: ()
      }
      // The file .wh.NAME hides what lies below its layer, not what stands beside it.
      if part.directory.entries[".wh." + name] != nil { break search }
    }
    return found.isEmpty ? nil : directory(name, found)
  }

  /// The names of the listing.
  var names: Set<ByteString> { mentionedNames.filter { lookup($0) != nil } }

  /// All names that any part has, seen or not.
  var mentionedNames: Set<ByteString> {
    parts.reduce(into: []) { $0.formUnion($1.directory.entries.keys) }
  }

  /// The newest of the parts' times.
  var modified: TimeSpec {
    parts.map(\.directory.metadata.modified).max() ?? TimeSpec(seconds: 0, nanoseconds: 0)
  }

  private func directory(_ name: ByteString, _ parts: [Part]) -> MergedEntry {
    .directory(MergedDirectory(path: path / name, parts: parts, stack: stack))
  }
}

/// What a merged name is.
enum MergedEntry {
  /// A file of a layer, by its place in the layer's list.
  case file(layer: Int, index: Int)
  case directory(MergedDirectory)
}

extension PlannedDirectory {
  /// Whether it hides the directories below it.
  var isOpaque: Bool { !marks.isEmpty || entries[".wh..wh..opq"] != nil }
}
