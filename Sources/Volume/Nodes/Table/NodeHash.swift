import Posix

enum NodeHash {
  /// - Parameter isOneOfMany: whether the node has had hard links: then there may be thousands of the same file, through which
  /// a search for another one should not go.
  static func of(_ identity: FileIdentity, layer: UInt16, isOneOfMany: Bool = false) -> UInt32 {
    var hasher = Hasher()
    hasher.combine(identity)
    hasher.combine(layer)
    if isOneOfMany { hasher.combine(true) }
    return UInt32(truncatingIfNeeded: hasher.finalize())
  }

  static func of(_ name: [UInt8], in parent: UInt32) -> UInt32 {
    name.withUnsafeBytes { of($0, in: parent) }
  }

  static func of(_ name: UnsafeRawBufferPointer, in parent: UInt32) -> UInt32 {
    var hasher = Hasher()
    hasher.combine(parent)
    hasher.combine(bytes: name)
    return UInt32(truncatingIfNeeded: hasher.finalize())
  }
}
