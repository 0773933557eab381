import Layers
import Posix
import Fuse

/// What the kernel may have cached from a predecessor, compared with the layers.
extension NodeStore {
  /// The IDs of the layers that nodes refer to; none if no successor is to come.
  var usedLayers: Set<LayerID> { table.withLock { $0.memory?.usedLayers ?? [] } }

  /// Of the state that a directory had when the kernel began to cache it.
  func recordedFingerprint(of directory: NodeID) -> Fingerprint {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return .unknown }
      return table.memory?.fingerprint(of: slot) ?? .unknown
    }
  }

  func setFingerprint(_ fingerprint: Fingerprint, of node: NodeID) {
    table.withLock { table in
      if let slot = try? table.slot(of: node) { table.memory?.set(fingerprint, of: slot) }
    }
  }

  /// Records that the kernel has nothing of a file any more.
  func forgetFingerprint(of file: NodeID) { setFingerprint(.none, of: file) }

  /// Whether the kernel has no other state of a file than this one, as far as that is recorded.
  func isKnown(_ file: NodeID, as status: FileStatus) -> Bool {
    let recorded = recordedFingerprint(of: file)
    return recorded != .unknown && recorded == Fingerprint(status)
  }

  /// The fingerprint of a directory that consists of these parts.
  func fingerprint(of parts: [LayerDirectory]) -> Fingerprint {
    var states: [(layer: Int, attributes: FileStatus)] = []
    for part in parts {
      guard let attributes = try? part.attributes() else { return .unknown }
      states.append((stack.ids[part.layer].place, attributes))
    }
    return Fingerprint(of: states)
  }

  /// Whether the kernel's cache of a directory, filled by a predecessor, has yet to be compared with the layers.
  func isInherited(_ directory: NodeID) -> Bool {
    table.withLock { table in (try? Self.state(of: directory, table))?.isInherited ?? false }
  }

  /// Of a directory and those above it, those that have yet to be compared, from the top down.
  func inheritedPath(to directory: NodeID) -> [NodeID] {
    table.withLock { table in
      var path: [NodeID] = []
      var next = (try? table.slot(of: directory)) ?? 0
      while next != 0, table[next].directory?.isInherited == true {
        path.append(table.number(of: next))
        next = table[next].parent
      }
      return path.reversed()
    }
  }

  /// Records that a directory has been compared.
  func didCompare(_ directory: NodeID) {
    table.withLock { table in (try? Self.state(of: directory, table))?.isInherited = false }
  }

  func namedChildDirectories(of directory: NodeID) -> [(node: NodeID, name: [UInt8])] {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return [] }
      return table.childDirectories(of: slot).map { (table.number(of: $0), table.name(of: $0)) }
    }
  }

  /// The files of a directory that are not as the kernel may have cached them, with their names. Those with several hard
  /// links are among them, since they need watches of their own, and tables that other files may contribute to.
  func changedFiles(in directory: NodeID, _ parts: [LayerDirectory]) -> [(node: NodeID, name: [UInt8])] {
    let known = table.withLock { table -> [(NodeID, [UInt8], Node, Fingerprint)] in
      guard let slot = try? table.slot(of: directory) else { return [] }
      return table.children(of: slot).filter { table[$0].directory == nil }.map {
        (table.number(of: $0), table.name(of: $0), table[$0], table.memory?.fingerprint(of: $0) ?? .unknown)
      }
    }
    return known.compactMap { number, name, node, fingerprint in
      let isTable = stack.tables != nil && TableName.isTable(name, foldsNames: stack.foldsNames)
      if !isTable, !node.isDetached, let part = parts.first(where: { $0.layer == node.layer }),
        let present = try? withCName(name, { name throws(Errno) in try part.attributes(of: name) }),
        present.links == 1, present.identity == node.identity, Fingerprint(present) == fingerprint,
        fingerprint != .unknown
      {
        return nil
      }
      return (number, name)
    }
  }
}
