import Containers
import Layers
import Posix

/// The nodes of files, found by what identifies a file in its layer.
extension NodeTable {
  /// More than one only where hard links are separated.
  func files(_ identity: FileIdentity, layer: Int) -> [UInt32] {
    [false, true].flatMap { isOneOfMany in
      identities.all(NodeHash.of(identity, layer: UInt16(layer), isOneOfMany: isOneOfMany)) {
        isNode($0, of: identity, layer)
      }
    }
  }

  /// - Returns: 0 if there is none; any of several.
  func file(_ identity: FileIdentity, layer: Int) -> UInt32 {
    let sole = soleFile(identity, layer: layer)
    if sole != 0 || !separatesHardLinks(in: layer) { return sole }
    return identities.first(NodeHash.of(identity, layer: UInt16(layer), isOneOfMany: true)) {
      isNode($0, of: identity, layer)
    }
  }

  /// The node of one of a file's names.
  /// - Parameter isSole: whether the file has no other name: then the node of a name that it had before will do, since
  ///   files are renamed in their layers.
  /// - Returns: 0 if there is none.
  func file(
    _ identity: FileIdentity, layer: Int, named name: [UInt8], in parent: UInt32, isSole: Bool
  ) -> UInt32 {
    if !separatesHardLinks(in: layer) { return soleFile(identity, layer: layer) }
    // By the name, since a file may have thousands of names, and each a node.
    let named = entries.first(hash(name, in: parent)) {
      nodes[Int($0)].isIndexed && isNode($0, of: identity, layer)
        && (isNamed($0, name, in: parent) || isSpelling(name, of: $0, in: parent))
    }
    return named != 0 || !isSole ? named : soleFile(identity, layer: layer)
  }

  /// Records that a node's file has several hard links. Whether its other nodes are those of other names is not known from
  /// now on.
  mutating func markHardLinks(_ slot: UInt32) {
    let node = nodes[Int(slot)]
    if !separatesHardLinks(in: Int(node.layer)) { return }
    mark(slot)
    // There is at most one: it was found before there were others.
    let other = soleFile(node.identity, layer: Int(node.layer))
    if other != 0 { mark(other) }
  }

  private mutating func mark(_ slot: UInt32) {
    if nodes[Int(slot)].hadHardLinks { return }
    let isIndexed = nodes[Int(slot)].isIndexed
    unindex(slot)
    nodes[Int(slot)].hadHardLinks = true
    if isIndexed { index(slot) }
  }

  private func separatesHardLinks(in layer: Int) -> Bool { separatesHardLinks && layer > 0 }

  /// The node that was not seen with several hard links.
  private func soleFile(_ identity: FileIdentity, layer: Int) -> UInt32 {
    identities.first(NodeHash.of(identity, layer: UInt16(layer))) {
      isNode($0, of: identity, layer) && !nodes[Int($0)].hadHardLinks
    }
  }

  private func isNode(_ slot: UInt32, of identity: FileIdentity, _ layer: Int) -> Bool {
    nodes[Int(slot)].identity == identity && nodes[Int(slot)].layer == layer
  }
}
