import Posix

/// By what nodes are found in a hash table.
enum NodeHash {
  /// Files by the layer and identity that they have.
  static func of(_ identity: FileIdentity, layer: UInt16) -> UInt32 {
    var hasher = Hasher()
    hasher.combine(identity)
    hasher.combine(layer)
    return UInt32(truncatingIfNeeded: hasher.finalize())
  }

  /// Nodes by their parent and name.
  static func of(_ name: [UInt8], in parent: UInt32) -> UInt32 {
    var hasher = Hasher()
    hasher.combine(parent)
    name.withUnsafeBytes { hasher.combine(bytes: $0) }
    return UInt32(truncatingIfNeeded: hasher.finalize())
  }
}
