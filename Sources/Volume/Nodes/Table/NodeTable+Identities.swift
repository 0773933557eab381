import Containers
import Layers
import Posix

/// The nodes of files, found by what identifies a file in its layer.
extension NodeTable {
  /// - Returns: 0 if there is none; any of several.
  func file(_ identity: FileIdentity, layer: Int) -> UInt32 {
    identities.first(NodeHash.of(identity, layer: UInt16(layer))) { isNode($0, of: identity, layer) }
  }

  /// More than one only if `separatesHardLinks`.
  func files(_ identity: FileIdentity, layer: Int) -> [UInt32] {
    identities.all(NodeHash.of(identity, layer: UInt16(layer))) { isNode($0, of: identity, layer) }
  }

  private func isNode(_ slot: UInt32, of identity: FileIdentity, _ layer: Int) -> Bool {
    nodes[Int(slot)].identity == identity && nodes[Int(slot)].layer == layer
  }

  /// The node of one of a file's names, in any spelling.
  /// - Parameter isSole: whether the file has no other name: then the node of a name that it had before will do, since
  ///   files are renamed in their layers. Where there are several such nodes, it is not known which name became this one.
  /// - Returns: 0 if there is none.
  func file(
    _ identity: FileIdentity, layer: Int, named name: [UInt8], in parent: UInt32, isSole: Bool
  ) -> UInt32 {
    let first = file(identity, layer: layer)
    if first == 0 || isNamed(first, name, in: parent) { return first }
    let all = files(identity, layer: layer)
    if let named = all.first(where: {
      isNamed($0, name, in: parent) || isPathSpelling(name, of: $0, in: parent)
    }) {
      return named
    }
    return isSole && all.count == 1 ? first : 0
  }
}
