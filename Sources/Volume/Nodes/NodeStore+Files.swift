import Fuse
import Glibc
import Layers
import Posix

extension NodeStore {
  /// The size in bytes that the last reply gave to the kernel; 0 if there was none.
  func reportedSize(of node: NodeID) -> UInt64 {
    table.withLock { table in (try? table.slot(of: node)).flatMap { table[$0].reportedSize } ?? 0 }
  }

  func presentFile(of node: NodeID) throws(Errno) -> LayerFile? {
    try table.withLock { table throws(Errno) in table[try table.slot(of: node)].file }
  }

  /// The node's open file; opened now if it is not.
  ///
  /// From here on the node is pinned to this file: what replaces the file is another node. After the descriptor
  /// was evicted, the file is opened again by name, and only if its identity is the same.
  /// - Returns: the file, and whether it was opened just now; nil while the kernel may keep another size of it
  ///   (`Node.isSizeDoubtful`).
  /// - Throws: ESTALE when the file is lost; what openat(2) answers.
  func openFile(of node: NodeID) throws(Errno) -> (file: LayerFile, isNew: Bool)? {
    while true {
      let (present, isUnconfirmed) = try table.withLock { table throws(Errno) in
        let slot = try table.slot(of: node)
        return (table.useFile(of: slot), table[slot].isPinned && table[slot].isSizeDoubtful)
      }
      if isUnconfirmed { return nil }
      if let present { return (present, false) }
      let (opened, identity) = try openByName(node)
      let isDoubtful = try table.withLock { table throws(Errno) in
        table[try table.slot(of: node)].isSizeDoubtful
      }
      if isDoubtful { return nil }
      if let file = try keep(opened, of: identity, for: node) { return (file, true) }
    }
  }

  /// Pins a node to an open file and keeps the descriptor within the budget.
  /// - Returns: the file to use, perhaps one that another request has kept; nil if the node was rebound.
  func keep(
    _ opened: LayerFile, of identity: FileIdentity, for node: NodeID
  ) throws(Errno) -> LayerFile? {
    let (file, evicted) = try table.withLock { table throws(Errno) in
      table.keep(opened, of: identity, for: try table.slot(of: node))
    }
    withExtendedLifetime(evicted) {}
    return file
  }

  /// Opens the non-directory to which a node refers: a regular file for reading, others with `O_PATH`.
  func openByName(_ node: NodeID) throws(Errno) -> (LayerFile, FileIdentity) {
    try evictingOnDemand { () throws(Errno) in
      try withFileLocation(of: node) { location, directory, name throws(Errno) in
        let identity = location.identity
        let file =
          location.kind == .regular
          ? try directory.openFile(name, identity: identity)
          : try directory.openPath(name, identity: identity)
        return (file, identity)
      }
    }
  }

  /// Runs a body that opens files and directories of layers; on EMFILE it evicts descriptors and tries again. Where
  /// there are none to evict, concurrent requests have them, and it waits for these, for some 50 ms at most.
  func evictingOnDemand<Result>(_ body: () throws(Errno) -> Result) throws(Errno) -> Result {
    var (count, waits) = (1, 0)
    while true {
      do throws(Errno) { return try body() } catch {
        guard error == .tooManyOpenFiles else { throw error }
        // Layers and concurrent requests use more descriptors than the budget leaves them.
        let evicted = table.withLock { $0.evict(count) }
        count = min(count * 2, 1 << 20)
        if !evicted.isEmpty { continue }
        if waits == 25 { throw error }
        waits += 1
        usleep(2000)
      }
    }
  }

  /// Runs the body with a file's directory in its layer, its name there, and the identity that it must have.
  ///
  /// A node is one file for ever, but for one that is not pinned: if its name belongs to another file by now, which all may
  /// open that could open the former one, the node is bound to that one and the body runs again. The body reports this by
  /// ENOENT or ESTALE.
  /// - Throws: ESTALE when the file is lost; what the body throws.
  func withLocation<Result: ~Copyable>(
    of node: NodeID, _ body: (LayerDirectory, CName, FileIdentity) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    try withFileLocation(of: node) { location, directory, name throws(Errno) in
      try body(directory, name, location.identity)
    }
  }

  /// As `withLocation`, with the node of the directory in which the file was looked up last.
  func withFileLocation<Result: ~Copyable>(
    of node: NodeID, _ body: (FileLocation, LayerDirectory, CName) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    // Bounded in case a program replaces the file in a loop.
    for _ in 0..<16 {
      let location = try location(of: node)
      do throws(Errno) {
        if location.identity.isMergedTable { try checkTable(location) }
        let directory = try layerDirectory(of: location)
        return try withCName(location.name) { name throws(Errno) in
          try body(location, directory, name)
        }
      } catch {
        guard error == .noSuchFileOrDirectory || error == .notDirectory || error == .staleFileHandle
        else { throw error }
      }
      if try moveToHardLink(node, from: location) { continue }
      try rebind(node, location)
    }
    throw .staleFileHandle
  }

  private func location(of node: NodeID) throws(Errno) -> FileLocation {
    try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      guard let kind = table[slot].kind, kind != .directory else { throw .isDirectory }
      return FileLocation(
        kind: kind, layer: Int(table[slot].layer), identity: table[slot].identity,
        isPinned: table[slot].isPinned, parent: table.number(of: table[slot].parent),
        name: table.name(of: slot))
    }
  }

  /// The file's directory in its layer: by the merged directory where the layer takes part in it, else by its
  /// path in the layer alone, since hiding a file does not take it away from its readers.
  private func layerDirectory(of location: FileLocation) throws(Errno) -> LayerDirectory {
    try withCName(location.name) { name throws(Errno) in
      let (layer, identity) = (location.layer, location.identity)
      if watcher != nil, let part = try? merged(of: location.parent).part(of: layer, with: name, identity) {
        return part
      }
      let directory = try stack[layer].directory(at: path(of: location.parent))
      return directory.part(of: layer, with: name, identity) ?? directory.top
    }
  }

  /// Finds a merged table again, which needs all layers that have part in it.
  /// - Throws: ESTALE if the name is another table's, or none's.
  private func checkTable(_ location: FileLocation) throws(Errno) {
    let directory = try merged(of: location.parent)
    let found = try withCName(location.name) { name throws(Errno) in try directory.lookup(name) }
    guard case .file(_, let attributes) = found, attributes.identity == location.identity else {
      throw .staleFileHandle
    }
  }

  /// Moves a node to another name of its file, if there is one. Names that the file has lost meanwhile are
  /// removed, so that an unpinned node keeps the name by which it was found last.
  private func moveToHardLink(_ node: NodeID, from location: FileLocation) throws(Errno) -> Bool {
    while true {
      let (hasMoved, link) = try table.withLock { table throws(Errno) -> (Bool, EntryKey?) in
        let slot = try table.slot(of: node)
        // Another request may have moved it meanwhile.
        if table.name(of: slot) != location.name || table.number(of: table[slot].parent) != location.parent {
          return (true, nil)
        }
        return (false, table.hardLinkName(of: slot))
      }
      if hasMoved { return true }
      guard let link else { return false }
      let isThere = try isThere(location, at: link)
      let isMoved = try table.withLock { table throws(Errno) in
        let slot = try table.slot(of: node)
        if isThere { return table.moveToHardLinkName(slot) }
        _ = table.hardLinks.remove(slot, at: link)
        return false
      }
      if isMoved { return true }
    }
  }

  /// - Throws: `deferred`.
  private func isThere(_ location: FileLocation, at link: EntryKey) throws(Errno) -> Bool {
    do throws(Errno) {
      let directory = try stack[location.layer].directory(at: path(of: link.parent))
      _ = try withCName(link.name) { name throws(Errno) in
        let part = directory.part(of: location.layer, with: name, location.identity) ?? directory.top
        return try part.attributes(of: name, identity: location.identity)
      }
      return true
    } catch {
      if error == .deferred { throw error }
      return false
    }
  }

  /// Binds a node to the file that has its name now.
  /// - Throws: ESTALE if the node is pinned, if no file of its kind has the name, or one that has other rights, or one of
  ///   another size and the kernel cannot be asked for the size that it has. The next lookup finds a new node then.
  private func rebind(_ node: NodeID, _ location: FileLocation) throws(Errno) {
    if location.isPinned { throw .staleFileHandle }
    let found: Entry?
    do throws(Errno) {
      let directory = try merged(of: location.parent)
      found = try withCName(location.name) { name throws(Errno) in try directory.lookup(name) }
    } catch {
      throw error == .noSuchFileOrDirectory || error == .notDirectory ? .staleFileHandle : error
    }
    guard case .file(let layer, let attributes) = found, attributes.kind == location.kind
    else { throw .staleFileHandle }
    guard try mayFollow(location, of: node, to: attributes) else { throw .staleFileHandle }
    let number = inodeNumber(device: attributes.identity.device, inode: attributes.identity.inode)
    try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      // Another request may have pinned or rebound it meanwhile.
      if table[slot].isPinned || table[slot].identity != location.identity { return }
      if !knowsKernelSizes, !table[slot].hasOnlySize(attributes.size) { throw .staleFileHandle }
      table.recordReportedSize(attributes.size, of: slot)
      table.rebind(
        slot, to: attributes.identity, layer: layer, isSole: attributes.links <= 1, inodeNumber: number)
      // No event may have come yet, and a listing in preparation has the former file's attributes for the node.
      table[table[slot].parent].directory?.version += 1
    }
    // The watch on the file itself, if any, is one on the former file.
    watcher?.unwatchFile(node)
    if visibleTimes != nil {
      _ = try withCName(location.name) { name throws(Errno) in
        earliestTime(of: attributes, layer: layer, name, in: location.parent)
      }
    }
  }
}
