import Containers
import Layers
import Posix

/// The nodes of files, found by what identifies a file in its layer.
extension NodeTable {
  /// More than one only where hard links are separated.
  func files(_ identity: FileIdentity, layer: Int) -> [UInt32] {
    identities.all(NodeHash.of(identity, layer: UInt16(layer))) { isNode($0, of: identity, layer) }
  }

  /// - Returns: 0 if there is none; any of several.
  func file(_ identity: FileIdentity, layer: Int) -> UInt32 {
    file(identity, layer: layer) { _ in true }
  }

  /// The node of one of a file's names.
  /// - Parameter isSole: whether the file has no other name: then the node of a name that it had before will do, since
  ///   files are renamed in their layers.
  /// - Returns: 0 if there is none.
  func file(
    _ identity: FileIdentity, layer: Int, named name: [UInt8], in parent: UInt32, isSole: Bool
  ) -> UInt32 {
    if !separatesHardLinks(in: layer) { return file(identity, layer: layer) }
    // By the name, since a file may have thousands of names, and each a node.
    let named = entries.first(hash(name, in: parent)) {
      nodes[Int($0)].isIndexed && isNode($0, of: identity, layer)
        && (isNamed($0, name, in: parent) || isSpelling(name, of: $0, in: parent))
    }
    if named != 0 || !isSole { return named }
    return file(identity, layer: layer) { !nodes[Int($0)].hadHardLinks }
  }

  /// Records that a node's file has several hard links. Whether it is the node of another name is not known from now on.
  mutating func markHardLinks(_ slot: UInt32) {
    let node = nodes[Int(slot)]
    guard separatesHardLinks(in: Int(node.layer)), !node.hadHardLinks else { return }
    nodes[Int(slot)].hadHardLinks = true
    // At most one of the others is not marked.
    let other = file(node.identity, layer: Int(node.layer)) { !nodes[Int($0)].hadHardLinks }
    if other != 0 { nodes[Int(other)].hadHardLinks = true }
  }

  private func separatesHardLinks(in layer: Int) -> Bool { separatesHardLinks && layer > 0 }

  private func file(
    _ identity: FileIdentity, layer: Int, where matches: (UInt32) -> Bool
  ) -> UInt32 {
    identities.first(NodeHash.of(identity, layer: UInt16(layer))) {
      isNode($0, of: identity, layer) && matches($0)
    }
  }

  private func isNode(_ slot: UInt32, of identity: FileIdentity, _ layer: Int) -> Bool {
    nodes[Int(slot)].identity == identity && nodes[Int(slot)].layer == layer
  }
}
