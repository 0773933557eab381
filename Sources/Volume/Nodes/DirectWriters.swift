import Fuse
import Posix

/// Knows the files to which programs write past the daemon (FUSE passthrough).
protocol DirectWriters: AnyObject, Sendable {
  /// Whether a program has a file open for that, or may have it mapped.
  func mayWrite(to node: NodeID) -> Bool
  /// Whether a program has a file open for that.
  func isOpen(_ node: NodeID) -> Bool
  /// Finds out whether a file that no program has open for writing is mapped still.
  func checkMapping(of node: NodeID, in store: NodeStore)
  /// Records that the layer has reported the closing of a file that was open for writing (IN_CLOSE_WRITE).
  func recordClosing(of node: NodeID, in store: NodeStore)
}

extension NodeStore {
  /// Whether the content, the size and the times of a file may change without a request, so far as is known.
  func isWrittenDirectly(_ node: NodeID) -> Bool { directWriters(of: node) != nil }

  /// Read-only mounts, in which nothing is written, take no lock for that.
  private func directWriters(of node: NodeID) -> (any DirectWriters)? {
    guard isWritable, let writers = directWriters.withLock({ $0 }), writers.mayWrite(to: node) else {
      return nil
    }
    return writers
  }

  /// As `isWrittenDirectly`, by what is the case now. Then the kernel must ask for attributes each time.
  func isWrittenDirectlyNow(_ node: NodeID) -> Bool {
    guard let writers = directWriters(of: node) else { return false }
    writers.checkMapping(of: node, in: self)
    return writers.mayWrite(to: node)
  }

  /// Records an event of a file in the upper layer.
  /// - Parameter isClosing: whether it is IN_CLOSE_WRITE.
  /// - Returns: whether it counts as the mount's own, since a program has the file open for writing directly.
  func recordDirectEvent(of node: NodeID, isClosing: Bool) -> Bool {
    guard let writers = directWriters(of: node) else { return false }
    if isClosing { writers.recordClosing(of: node, in: self) }
    return writers.isOpen(node)
  }

  /// Whether watches report the closing of a file in the upper layer.
  func reportsClosing(of node: NodeID) -> Bool {
    guard watcher != nil else { return false }
    return table.withLock { table in
      guard let slot = try? table.slot(of: node), !table[slot].isDetached else { return false }
      return table[table[slot].parent].directory?.isCovered ?? false
    }
  }

  /// Whether the kernel knows a node.
  func isKnown(_ node: NodeID) -> Bool {
    table.withLock { table in (try? table.slot(of: node)).map { table[$0].lookups > 0 } ?? false }
  }

  /// Whether a node is a regular file that the upper layer has, with this identity.
  /// - Throws: ESTALE.
  func isUpperFile(_ node: NodeID, _ status: FileStatus) throws(Errno) -> Bool {
    try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      let identity = table[slot].identity
      return table[slot].kind == .regular && table[slot].layer == 0
        && identity.device == status.identity.device && identity.inode == status.identity.inode
    }
  }
}
