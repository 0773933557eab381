import CLibrary
import Posix

/// A snapshot of one layer's entries and whiteouts in a directory, which can have twins.
struct SingleLayerDirectory {
  let layer: Int
  /// The layer above that keeps the directory out of the merge; nil if the directory is merged.
  let cutoff: Int?
  private(set) var entries: [[UInt8]: FileKind] = [:]
  private(set) var whiteouts: Set<[UInt8]> = []
  /// The entries that the view hides in all layers.
  private(set) var excluded: [[UInt8]: FileKind] = [:]
  /// The names of the entries where case does not count; empty elsewhere.
  private var names = FoldedNames()
  /// The kinds of the entries that have one spelling in several twins, but for the first.
  private var further: [[UInt8]: [FileKind]] = [:]

  init(_ directory: LayerDirectory, cutoff: Int?) throws(Errno) { try self.init([directory], cutoff: cutoff) }

  /// - Parameter parts: of one layer.
  init(_ parts: ArraySlice<LayerDirectory>, cutoff: Int?) throws(Errno) {
    layer = parts[parts.startIndex].layer
    self.cutoff = cutoff
    for part in parts { try add(part) }
  }

  private mutating func add(_ directory: LayerDirectory) throws(Errno) {
    try directory.forEachEntryOfLayer { entry throws(Errno) in
      let name = Array(UnsafeRawBufferPointer(start: entry.name, count: entry.nameLength))
      if WhiteoutMarker.isMarker(entry.name) {
        whiteouts.insert(WhiteoutMarker.name(hiddenBy: name))
      } else if directory.conceals(entry.name) {
        excluded[name] = entry.kind ?? .regular
      } else if let found = try directory.listed(entry, recordsInodes: true) {
        if found.isWhiteout { whiteouts.insert(name) } else { add(name, found.kind, directory.foldsNames) }
      }
    }
  }

  private mutating func add(_ name: [UInt8], _ kind: FileKind, _ foldsNames: Bool) {
    if entries[name] == nil { entries[name] = kind } else { further[name, default: []].append(kind) }
    if foldsNames { names.add(name, key: NameFolding.key(of: name)) }
  }
}

/// Where case does not count.
extension SingleLayerDirectory {
  /// With what the spellings of a name have in common in place of the names.
  var folded: SingleLayerDirectory {
    var folded = self
    folded.entries = names.first.compactMapValues { entries[$0] }
    folded.whiteouts = Set(whiteouts.map(NameFolding.key))
    return folded
  }

  /// The first entry by bytes of those that a name finds; nil for none.
  /// - Parameter key: what the spellings of the name have in common.
  func spelling(ofKey key: [UInt8]) -> [UInt8]? { names.first[key] }

  /// The entries that have another one's name, and come after it.
  var collisions: [ComparedName] {
    names.collisions.values.flatMap { all in
      all.indices.dropFirst().compactMap { index in
        let name = all[index]
        let former = all[..<index].count { $0 == name }
        let kind = former == 0 ? entries[name] : further[name]?[former - 1]
        return kind.map { ComparedName(name: name, kind: $0, status: .collision, layers: [layer]) }
      }
    }
  }
}

extension LayerStack {
  /// The directories of all layers at a path: those that are merged, and those that a cutoff hides.
  /// Unreadable ones of the latter are omitted.
  func singleLayerDirectories(
    at path: [[UInt8]], of merged: MergedDirectory
  ) throws(Errno) -> [SingleLayerDirectory] {
    var found: [SingleLayerDirectory] = []
    for layer in layers where !layer.isAbsent {
      let index = layer.root.layer
      let parts = merged.parts(of: index)
      if !parts.isEmpty {
        found.append(try SingleLayerDirectory(parts, cutoff: nil))
      } else if let cutoff = try? cutoff(of: index, at: path), let own = try? layer.directory(at: path),
        let directory = try? SingleLayerDirectory(own.parts[...], cutoff: cutoff)
      {
        found.append(directory)
      }
    }
    return found
  }

  /// The layer whose opaque directory, whiteout or non-directory, at the path or above it, keeps another
  /// layer's directory out of the merge; nil if the layer has no such directory.
  private func cutoff(of layer: Int, at path: [[UInt8]]) throws(Errno) -> Int? {
    var own = MergedDirectory(parts: [layers[layer].root])
    var merged = try root()
    if merged.parts(of: layer).isEmpty { return merged.parts.last?.layer }
    var cutoff: Int?
    for name in path {
      let next = try withCName(name) { name throws(Errno) -> (MergedDirectory, MergedDirectory?)? in
        guard case .directory(let next, _) = try own.lookup(name) else { return nil }
        guard cutoff == nil else { return (next, nil) }
        if case .directory(let inner, _) = try merged.lookup(name), !inner.parts(of: layer).isEmpty {
          return (next, inner)
        }
        for part in merged.parts where part.layer < layer && cutoff == nil {
          if case .hides = try part.readEffect(on: name) { cutoff = part.layer }
        }
        return (next, nil)
      }
      guard let next else { return nil }
      own = next.0
      if let inner = next.1 { merged = inner }
    }
    return cutoff
  }
}
