import Glibc
import Posix

/// What one layer has in a directory, read at one time: entries and marks.
struct SingleLayerDirectory {
  let layer: Int
  /// The layer that keeps the directory from taking part in the merged one; nil if it does.
  let cutoff: Int?
  private(set) var entries: [[UInt8]: FileKind] = [:]
  /// Names that are hidden in the layers below.
  private(set) var whiteouts: Set<[UInt8]> = []

  init(_ directory: LayerDirectory, cutoff: Int?) throws(Errno) {
    layer = directory.layer
    self.cutoff = cutoff
    try directory.forEachEntry { entry throws(Errno) in
      let name = Array(UnsafeRawBufferPointer(start: entry.name, count: entry.nameLength))
      if WhiteoutMarkers.isMarker(entry.name) {
        whiteouts.insert(Array(name.dropFirst(4)))
      } else if let found = try directory.listed(entry, recordsInodes: true) {
        if found.isWhiteout { whiteouts.insert(name) } else { entries[name] = found.kind }
      }
    }
  }
}

extension LayerStack {
  /// What the layers have at a path: those that take part in its merged directory, and those that are kept from
  /// it, with the layer by whose doing. Of these, what cannot be looked at is left out.
  func singleLayerDirectories(at path: [[UInt8]], of merged: MergedDirectory) throws(Errno)
    -> [SingleLayerDirectory]
  {
    var found: [SingleLayerDirectory] = []
    for layer in layers {
      let index = layer.root.layer
      if let part = merged.part(of: index) {
        found.append(try SingleLayerDirectory(part, cutoff: nil))
      } else if let cutoff = try? cutoff(of: index, at: path), let own = try? layer.directory(at: path),
        let directory = try? SingleLayerDirectory(own, cutoff: cutoff)
      {
        found.append(directory)
      }
    }
    return found
  }

  /// The layer that keeps another one's directory from taking part: by being opaque, by a mark, or by something
  /// that is no directory, at the path or above it. nil where the layer has no such directory.
  private func cutoff(of layer: Int, at path: [[UInt8]]) throws(Errno) -> Int? {
    var own = layers[layer].root
    var merged = try root()
    if merged.part(of: layer) == nil { return merged.parts.last?.layer }
    var cutoff: Int?
    for name in path {
      let next = try withCName(name) { name throws(Errno) -> (LayerDirectory, MergedDirectory?)? in
        guard case .directory(let next, _) = try own.find(name) else { return nil }
        guard cutoff == nil else { return (next, nil) }
        if case .directory(let inner, _) = try merged.lookup(name), inner.part(of: layer) != nil {
          return (next, inner)
        }
        for part in merged.parts where part.layer < layer && cutoff == nil {
          if try part.stopsMerge(at: name) { cutoff = part.layer }
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

extension LayerDirectory {
  /// Whether what it has under a name keeps directories of that name further down from taking part.
  fileprivate func stopsMerge(at name: CName) throws(Errno) -> Bool {
    switch try find(name) {
    case .whiteout, .file: return true
    case .directory(let directory, _): if try directory.isOpaque() { return true }
    case .nothing: break
    }
    return try hasWhiteoutMarker(name, length: strlen(name))
  }
}
