import Glibc
import Posix

/// A name of a directory, by all that the layers have under it.
public struct ComparedName: Sendable, Equatable {
  /// What has become of it, seen from the layer at the bottom, MAIN.
  public enum Verdict: UInt8, Sendable, CaseIterable {
    /// MAIN's entry is shown, or a directory that MAIN has, too.
    case unchanged = 0x3D  // =
    /// Another layer's entry is shown in the place of MAIN's.
    case overridden = 0x3E  // >
    /// Another layer's entry is shown, and MAIN has none.
    case added = 0x2B  // +
    /// A mark keeps it from being shown.
    case hidden = 0x2D  // -
  }

  public let name: [UInt8]
  /// What is shown under the name, or what would be first if it were not hidden.
  public let kind: FileKind
  public let verdict: Verdict
  /// The layer whose entry is shown, or which hides the name; then, from the top down, those that have the name
  /// below.
  public let layers: [Int]
}

extension LayerStack {
  /// Compares what a merged directory shows with what the layers have in it, marks or no marks.
  /// - Parameters:
  ///   - merged: the directory.
  ///   - path: its names from the root.
  /// - Returns: by name, sorted; what exists as a mark only is left out.
  public func comparison(
    of merged: MergedDirectory, at path: [[UInt8]]
  ) throws(Errno) -> [ComparedName] {
    let parts = try ownDirectories(at: path)
    var having: [[UInt8]: [(layer: Int, kind: FileKind)]] = [:]
    for part in parts {
      let listing = try MergedDirectory(parts: [part]).list()
      for item in listing.items {
        having[listing.name(of: item), default: []].append((part.layer, item.kind))
      }
    }
    let shown = try merged.list()
    var compared: [ComparedName] = []
    for item in shown.items {
      let name = shown.name(of: item)
      let below = (having.removeValue(forKey: name) ?? []).filter { $0.layer > Int(item.layer) }
      compared.append(self.shown(name, item, below))
    }
    for (name, found) in having {
      guard let first = found.first else { continue }
      let hider = try self.hider(of: name, above: first.layer, parts, merged)
      compared.append(
        ComparedName(name: name, kind: first.kind, verdict: .hidden, layers: [hider] + found.map(\.layer)))
    }
    return compared.sorted { $0.name.lexicographicallyPrecedes($1.name) }
  }

  /// The directories that the layers have at a path, whatever hides them.
  private func ownDirectories(at path: [[UInt8]]) throws(Errno) -> [LayerDirectory] {
    var found: [LayerDirectory] = []
    for layer in layers {
      do throws(Errno) { found.append(try layer.directory(at: path)) } catch {
        if error != .noEntry, error != .notDirectory { throw error }
      }
    }
    return found
  }

  private func shown(
    _ name: [UInt8], _ item: Listing.Item, _ below: [(layer: Int, kind: FileKind)]
  ) -> ComparedName {
    let main = layers.count - 1
    let verdict: ComparedName.Verdict
    if Int(item.layer) == main {
      verdict = .unchanged
    } else if let last = below.last, last.layer == main {
      verdict = item.kind == .directory && last.kind == .directory ? .unchanged : .overridden
    } else {
      verdict = .added
    }
    return ComparedName(
      name: name, kind: item.kind, verdict: verdict, layers: [Int(item.layer)] + below.map(\.layer))
  }

  /// The layer that hides a name: by a mark for it, else by one for the directory.
  private func hider(
    of name: [UInt8], above layer: Int, _ parts: [LayerDirectory], _ merged: MergedDirectory
  ) throws(Errno) -> Int {
    for part in parts where part.layer < layer {
      let isMarked = try withCName(name) { name throws(Errno) in
        if case .whiteout = try part.find(name) { return true }
        return try part.hidesBelow(name, length: strlen(name))
      }
      if isMarked { return part.layer }
    }
    return merged.parts.last { $0.layer < layer }?.layer ?? merged.top.layer
  }
}
