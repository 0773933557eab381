import Glibc
import Posix

/// Queries about a subset of the layers.
extension MergedDirectory {
  /// Looks a name up without some layers.
  /// - Throws: as `lookup`.
  public func lookup(_ name: CName, without layers: Set<Int>) throws(Errno) -> Entry? {
    let rest = parts.filter { !layers.contains($0.layer) }
    return rest.isEmpty ? nil : try MergedDirectory(parts: rest).lookup(name)
  }

  /// Whether a whiteout in a higher layer hides the layer's entry.
  public func hides(_ name: CName, ofLayer layer: Int) throws(Errno) -> Bool {
    for part in parts where part.layer < layer {
      if case .whiteout = try part.find(name) { return true }
      if try part.hasWhiteoutMarker(name, length: strlen(name)) { return true }
    }
    return false
  }
}
