import Fuse
import Layers
import Posix

/// What is known about former states of names: files that have lost theirs, and whiteouts.
extension NodeStore {
  /// Whether the kernel knows a name only as that of a file that has lost it.
  func isLeftToFormerFile(_ name: [UInt8], in directory: NodeID) -> Bool {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory), table.nodes(named: name, in: slot).isEmpty else {
        return false
      }
      return table.files(lastNamed: name, in: slot).contains {
        table[$0].isDetached && table[$0].lookups > 0
      }
    }
  }

  /// The files that the kernel may know by a name, and that no name leads to any more; none if it may know another file by
  /// that name. Files that are not open are not among them.
  func deletedFiles(lastNamed name: [UInt8], in directory: NodeID) -> [NodeID] {
    let open = table.withLock { table -> [(node: NodeID, file: LayerFile)] in
      guard let slot = try? table.slot(of: directory) else { return [] }
      return table.files(lastNamed: name, in: slot).compactMap { next in
        guard table[next].lookups > 0, let file = table[next].file else { return nil }
        return (table.number(of: next), file)
      }
    }
    let deleted = open.filter { (try? $0.file.attributes())?.links == 0 }.map(\.node)
    if deleted.isEmpty { return [] }
    let isOthers = table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return true }
      return table.nodes(named: name, in: slot).contains { !deleted.contains(table.number(of: $0)) }
    }
    return isOthers ? [] : deleted
  }

  /// The names under which the kernel may still have files of layers that the mount had before, and nothing else.
  var namesLeftToRetiredLayers: [EntryKey] {
    table.withLock { table in
      func isRetired(_ slot: UInt32) -> Bool {
        table[slot].kind != nil && table[slot].directory == nil
          && Int(table[slot].layer) >= stack.layers.count
      }
      return (NodeTable.root + 1..<UInt32(table.nodes.count)).filter(isRetired).compactMap { slot in
        let (parent, name) = (table[slot].parent, table.name(of: slot))
        guard table.nodes(named: name, in: parent).allSatisfy(isRetired) else { return nil }
        return EntryKey(parent: table.number(of: parent), name: name)
      }
    }
  }

  /// The names that files in a directory have lost.
  func formerFileNames(in directory: NodeID) -> Set<[UInt8]> {
    table.withLock { table in
      guard let slot = try? table.slot(of: directory) else { return [] }
      return Set(
        table.children(of: slot).filter { table[$0].isDetached && table[$0].lookups > 0 }
          .map { table.name(of: $0) })
    }
  }

  /// Remembers whiteouts in a directory, so that watchers of the mount are not sent events of their own.
  func record(_ whiteouts: [Listing.Whiteout], in directory: NodeID) {
    if whiteouts.isEmpty || watcher == nil { return }
    table.withLock { table in
      guard let state = try? Self.state(of: directory, table) else { return }
      state.whiteouts = (state.whiteouts ?? []).union(whiteouts)
    }
  }
}
