import Glibc
import Posix

/// What a directory would show if some layers were other than they are.
extension MergedDirectory {
  /// Looks a name up as if some layers did not take part.
  /// - Throws: as `lookup`.
  public func lookup(_ name: CName, without layers: Set<Int>) throws(Errno) -> Entry? {
    let rest = parts.filter { !layers.contains($0.layer) }
    return rest.isEmpty ? nil : try MergedDirectory(parts: rest).lookup(name)
  }

  /// Whether a mark in a layer above hides what a layer has of a name.
  public func hides(_ name: CName, ofLayer layer: Int) throws(Errno) -> Bool {
    for part in parts where part.layer < layer {
      if case .whiteout = try part.find(name) { return true }
      if try part.hasWhiteoutMarker(name, length: strlen(name)) { return true }
    }
    return false
  }
}
