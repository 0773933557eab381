import Fuse
import Layers
import Posix

/// The last known state, for requests that a layer keeps waiting.
extension NodeStore {
  /// The entry of a directory that the kernel knows, as it was resolved last; its node has one lookup more.
  /// - Returns: nil if that is not known, or if the calling thread has to ask the layers.
  func knownDirectory(_ name: CName, in parent: NodeID) -> EntryReply? {
    guard LayerAccess.current.usesKnownState else { return nil }
    let bytes = [UInt8](bytesOf: name)
    let known = table.withLock { table -> (NodeID, UInt64)? in
      guard let parent = try? table.slot(of: parent) else { return nil }
      let slot = table.directory(bytes, in: parent)
      guard slot != 0, table[slot].directory?.wasResolved == true else { return nil }
      table[slot].lookups += 1
      return (table.number(of: slot), table[slot].inodeNumber)
    }
    guard let (node, number) = known else { return nil }
    guard let attributes = try? merged(of: node).attributes() else {
      forget(node, lookups: 1)
      return nil
    }
    let timeout = timeout(in: parent)
    return EntryReply(
      node: node,
      attributes: NodeAttributes(
        shown(attributes), inodeNumber: number, timeout: min(timeout, CacheMode.short)),
      timeout: min(timeout, CacheMode.short))
  }
}
