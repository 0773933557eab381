import Fuse
import Glibc
import Layers
import Posix

/// Files: their content, link targets, and the way to them by name.
extension Volume {
  public func read(_ node: NodeID, at offset: Int64, size: Int, reply: consuming Reply<ReplyKind.Bytes>) {
    if node == ControlFile.node {
      reply.send(Array(control.read(at: offset, size: size)))
      return
    }
    let file: OpenFile?
    do throws(Errno) { file = try openFile(of: node) } catch {
      reply.fail(error)
      return
    }
    if let file { return Self.send(file, at: offset, size: size, isFirst: true, reply) }
    let deferred = DeferredReply(reply)
    let isTaken = errands.add { [self] in
      guard let reply = deferred.take() else { return }
      do throws(Errno) {
        Self.send(try openCertainFile(of: node), at: offset, size: size, isFirst: true, reply)
      } catch {
        reply.fail(error)
      }
    }
    if !isTaken, let reply = deferred.take() { reply.fail(.staleFileHandle) }
  }

  /// - Parameter isFirst: whether it was not tried before.
  private static func send(
    _ file: OpenFile, at offset: Int64, size: Int, isFirst: Bool, _ reply: consuming Reply<ReplyKind.Bytes>
  ) {
    if size >= Self.leastSpliced, file.isDescriptor {
      return sendSpliced(file, at: offset, size: size, reply)
    }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
    defer { buffer.deallocate() }
    let count: Int?
    do throws(Errno) { count = try file.readNow(into: buffer, at: offset, isCounted: isFirst) } catch {
      reply.fail(error)
      return
    }
    if let count {
      reply.send(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    } else {
      sendLater(file, at: offset, size: size, reply)
    }
  }

  /// From how many bytes on a reply is spliced; fewer are copied sooner.
  private static let leastSpliced = 64 << 10

  private static func sendSpliced(
    _ file: OpenFile, at offset: Int64, size: Int, _ reply: consuming Reply<ReplyKind.Bytes>
  ) {
    let deferred = DeferredReply(reply)
    _ = try? file.withDescriptor { deferred.take()?.send($0, at: offset, size: size) }
  }

  /// Pays once an entry of an archive is unpacked so far; no request's thread waits for that.
  private static func sendLater(
    _ file: OpenFile, at offset: Int64, size: Int, _ reply: consuming Reply<ReplyKind.Bytes>
  ) {
    let deferred = DeferredReply(reply)
    file.whenReadable(at: offset, count: size) { failure in
      guard let reply = deferred.take() else { return }
      if let failure { return reply.fail(failure) }
      send(file, at: offset, size: size, isFirst: false, reply)
    }
  }

  public func seek(_ node: NodeID, to offset: Int64, whence: CInt, reply: consuming Reply<ReplyKind.Offset>) {
    if node == ControlFile.node { return control.seek(offset, whence: whence, reply) }
    let place: Int64
    do throws(Errno) {
      var file = try openFile(of: node)
      if file == nil { file = try openByName(node).0 }
      place = try file?.seek(offset, whence: whence) ?? 0
    } catch {
      reply.fail(error)
      return
    }
    reply.send(place)
  }

  public func readLink(_ node: NodeID, reply: consuming Reply<ReplyKind.Bytes>) {
    let target: [UInt8]
    do throws(Errno) {
      target = try withPlace(of: node) { directory, name, identity throws(Errno) in
        try directory.openPath(name, identity: identity).linkTarget()
      }
      // The kernel keeps the target, so the node has to stay with this link.
      try table.withLock { table throws(Errno) in table[try table.slot(of: node)].isPinned = true }
    } catch {
      reply.fail(error)
      return
    }
    reply.send(target)
  }

  /// The file that a node has open already.
  func presentFile(of node: NodeID) throws(Errno) -> OpenFile? {
    try table.withLock { table throws(Errno) in table[try table.slot(of: node)].file }
  }

  /// The node's open file; opened now if it is not.
  ///
  /// From here on the node stays with this file: what replaces it is another node. If the descriptor has to
  /// make room for others, it is opened again by name, and only if the same file is found there.
  /// - Returns: nil while the kernel may keep another size of it (`Node.isSizeDoubtful`): then it is
  ///   `openCertainFile`'s.
  func openFile(of node: NodeID) throws(Errno) -> OpenFile? {
    while true {
      let present = try table.withLock { table throws(Errno) in table.useFile(of: try table.slot(of: node)) }
      if let present { return present }
      let (opened, identity) = try openByName(node)
      let isDoubtful = try table.withLock { table throws(Errno) in
        table[try table.slot(of: node)].isSizeDoubtful
      }
      if isDoubtful { return nil }
      if let file = try keep(opened, of: identity, for: node) {
        noteFirstRead(of: node)
        return file
      }
    }
  }

  /// - Returns: nil if the node stands for another file by now.
  func keep(
    _ opened: OpenFile, of identity: FileIdentity, for node: NodeID
  ) throws(Errno) -> OpenFile? {
    let (file, evicted) = try table.withLock { table throws(Errno) in
      table.keep(opened, of: identity, for: try table.slot(of: node))
    }
    withExtendedLifetime(evicted) {}
    return file
  }

  /// As `openFile`, once the kernel has the file's size. An errand, since asking the kernel takes the way into
  /// our own mount.
  /// - Throws: ESTALE if the node stands for another file than it did at first, and the kernel keeps another
  ///   size or cannot be asked.
  private func openCertainFile(of node: NodeID) throws(Errno) -> OpenFile {
    while true {
      let (opened, identity) = try openByName(node)
      let wasRebound = try table.withLock { table throws(Errno) in
        table[try table.slot(of: node)].wasRebound
      }
      let hasSize = try kernelHasSize(of: opened, node, attempts: wasRebound ? 3 : 1)
      // A file that grows while it is opened for the first time is cut for that moment as anywhere else.
      if !hasSize, wasRebound { throw .staleFileHandle }
      if let file = try keep(opened, of: identity, for: node) { return file }
    }
  }

  /// Whether the kernel has a file's size; it is made to ask if it has another.
  /// - Parameter attempts: the answer to the first may be thrown away as well.
  private func kernelHasSize(
    of file: OpenFile, _ node: NodeID, attempts: Int
  ) throws(Errno) -> Bool {
    guard let kernel = kernel.withLock({ $0 }) else { return false }
    var kept = try? kernel.size(of: node)
    for _ in 0..<attempts where kept != nil {
      if kept == (try file.attributes().size) { return true }
      // By another thread: once it has taken the size, the kernel waits for the reads that wait for us.
      _ = refreshes.add { try? kernel.refreshAttributes(of: node) }
      for _ in 0..<20 {
        usleep(1000)
        kept = try? kernel.size(of: node)
        if kept == (try file.attributes().size) { return true }
      }
    }
    return false
  }

  func openByName(_ node: NodeID) throws(Errno) -> (OpenFile, FileIdentity) {
    var evict = 1
    while true {
      do throws(Errno) {
        return try withPlace(of: node) { directory, name, identity throws(Errno) in
          (try directory.openFile(name, identity: identity), identity)
        }
      } catch {
        guard error == .tooManyOpenFiles else { throw error }
        // Others (the layers, a crowd of requests) took what the budget counted on.
        let evicted = table.withLock { $0.evict(evict) }
        if evicted.isEmpty { throw error }
        evict *= 2
      }
    }
  }

  /// Runs the body with where a file's node can be reached by name: its directory in its layer, the name
  /// there, and the identity that must be found.
  ///
  /// A node that nobody has read from is only a name: if the name is another file's by now, the node follows
  /// it, and the body runs again. The body tells that by ENOENT or ESTALE.
  /// - Throws: ESTALE when the file is lost; what the body throws.
  func withPlace<Result: ~Copyable>(
    of node: NodeID, _ body: (LayerDirectory, CName, FileIdentity) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    // The bound is only against someone who replaces the file for ever.
    for _ in 0..<16 {
      let place = try place(of: node)
      do throws(Errno) {
        let directory = try layerDirectory(of: place)
        return try withCName(place.name) { name throws(Errno) in try body(directory, name, place.identity) }
      } catch {
        guard error == .noSuchFileOrDirectory || error == .notDirectory || error == .staleFileHandle else {
          throw error
        }
      }
      if try moveToAlias(node, from: place) { continue }
      try follow(node, place)
    }
    throw .staleFileHandle
  }

  /// The file's directory in its layer: by the merged directory where the layer takes part in that, else by
  /// its path in the layer alone, since what hides a file does not take it away from who reads it.
  private func layerDirectory(of place: FileLocation) throws(Errno) -> LayerDirectory {
    if coherence != nil, let part = try? merged(of: place.parent).part(of: place.layer) { return part }
    return try stack.layers[place.layer].directory(at: path(of: place.parent))
  }

  /// Goes on to another name of a file, if it has one: those that it has lost meanwhile are forgotten, so that
  /// one that is only a name keeps the name by which it was found last.
  private func moveToAlias(_ node: NodeID, from place: FileLocation) throws(Errno) -> Bool {
    while true {
      let (isElsewhere, alias) = try table.withLock { table throws(Errno) -> (Bool, EntryKey?) in
        let slot = try table.slot(of: node)
        // Another request may have done so meanwhile.
        if table.name(of: slot) != place.name || table.number(of: table[slot].parent) != place.parent {
          return (true, nil)
        }
        return (false, table.hardLinkName(of: slot))
      }
      if isElsewhere { return true }
      guard let alias else { return false }
      let isThere = isThere(place, by: alias)
      let isMoved = try table.withLock { table throws(Errno) in
        let slot = try table.slot(of: node)
        if isThere { return table.moveToHardLinkName(slot) }
        table.removeHardLinkName(alias, of: slot)
        return false
      }
      if isMoved { return true }
    }
  }

  /// Whether a file is found by another name in its layer.
  private func isThere(_ place: FileLocation, by alias: EntryKey) -> Bool {
    guard let path = try? path(of: alias.parent),
      let directory = try? stack.layers[place.layer].directory(at: path)
    else { return false }
    let found = try? withCName(alias.name) { name throws(Errno) in
      try directory.attributes(of: name, identity: place.identity)
    }
    return found != nil
  }

  private func place(of node: NodeID) throws(Errno) -> FileLocation {
    try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      guard let kind = table[slot].kind, kind != .directory else { throw .isDirectory }
      return FileLocation(
        kind: kind, layer: Int(table[slot].layer), identity: table[slot].identity,
        isPinned: table[slot].isPinned, parent: table.number(of: table[slot].parent),
        name: table.name(of: slot))
    }
  }

  /// Makes a node stand for the file that has its name now.
  /// - Throws: ESTALE if content was read already, or if no file of its kind has the name.
  private func follow(_ node: NodeID, _ place: FileLocation) throws(Errno) {
    if place.isPinned { throw .staleFileHandle }
    let found: Entry?
    do throws(Errno) {
      let directory = try merged(of: place.parent)
      found = try withCName(place.name) { name throws(Errno) in try directory.lookup(name) }
    } catch {
      throw error == .noSuchFileOrDirectory || error == .notDirectory ? .staleFileHandle : error
    }
    guard case .file(let layer, let attributes) = found, attributes.kind == place.kind else {
      throw .staleFileHandle
    }
    let number = numbers.file(device: attributes.identity.device, inode: attributes.identity.inode)
    try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      // Another request may have begun to read, or followed, meanwhile.
      if table[slot].isPinned || table[slot].identity != place.identity { return }
      table.recordReportedSize(attributes.size, of: slot)
      table.rebind(slot, to: attributes.identity, layer: layer, inodeNumber: number)
    }
    // A watch on the file itself was one on the former file.
    coherence?.watches.removeFileWatch(node)
  }
}
