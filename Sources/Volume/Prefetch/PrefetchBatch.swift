import Fuse
import Layers
import Posix

/// A file to be prefetched, as the node table knew it.
struct PrefetchedFile {
  let node: NodeID
  let identity: FileIdentity
  let layer: Int
  let name: [UInt8]
  let size: UInt64
  let directory: NodeID
  /// The directory's version.
  let version: Int
  /// The directory in the file's layer, if it is open.
  let part: LayerDirectory?

  /// - Returns: nil if changes of it are not reported, or if the kernel may keep another size of it.
  init?(_ slot: UInt32, _ table: NodeTable) {
    guard let size = table[slot].reportedSize, !table[slot].isSizeDoubtful,
      let state = table[table[slot].parent].directory, state.isCovered
    else { return nil }
    (node, identity, layer) = (table.number(of: slot), table[slot].identity, Int(table[slot].layer))
    (name, directory) = (table.name(of: slot), table.number(of: table[slot].parent))
    (self.size, version) = (size, state.version)
    part = state.openPart(of: layer)
  }
}

/// A few small files that are opened and read without the node table's lock, then pinned under it together, then stored in
/// the kernel's page cache.
struct PrefetchBatch: ~Copyable {
  static let size = 4
  /// The bytes of a batch: two of the largest files.
  static let bytes = 256 << 10

  private let nodes: NodeStore
  private let buffer: UnsafeMutableRawBufferPointer
  private var used = 0
  private var contents: [(file: PrefetchedFile, opened: LayerFile, bytes: Range<Int>)] = []

  init(_ nodes: NodeStore, _ buffer: UnsafeMutableRawBufferPointer) {
    (self.nodes, self.buffer) = (nodes, buffer)
  }

  func hasRoom(for file: PrefetchedFile) -> Bool {
    contents.count < Self.size && UInt64(buffer.count - used) >= file.size
  }

  /// Opens and reads a file; what cannot be read as expected is left to its READ.
  mutating func read(_ file: PrefetchedFile) {
    guard let opened = try? open(file), opened.hadSingleLink, (try? opened.lastSeenSize()) == file.size
    else { return }
    // What could be decoded only after much else is not worth it.
    let bytes = used..<used + Int(file.size)
    let target = UnsafeMutableRawBufferPointer(rebasing: buffer[bytes])
    guard (try? opened.readNonBlocking(into: target, at: 0)) == target.count else { return }
    used = bytes.upperBound
    contents.append((file, opened, bytes))
  }

  private func open(_ file: PrefetchedFile) throws(Errno) -> LayerFile {
    let directory = try layerDirectory(of: file)
    return try withCName(file.name) { name throws(Errno) in
      try directory.openFile(name, identity: file.identity)
    }
  }

  private func layerDirectory(of file: PrefetchedFile) throws(Errno) -> LayerDirectory {
    if let part = file.part { return part }
    let merged = try nodes.merged(of: file.directory)
    let part = try withCName(file.name) { name throws(Errno) in
      merged.part(of: file.layer, with: name, file.identity)
    }
    guard let part else { throw .staleFileHandle }
    return part
  }

  /// Pins the nodes to their files. Drops what another reader has open already, and what has changed: the directory's
  /// watch does not report what happens to a file by another hard link, so it has one only.
  mutating func keep() {
    var released: [AnyObject] = []
    let kept = nodes.table.withLock { table in
      contents.filter { file, opened, _ in
        guard let slot = try? table.slot(of: file.node), table[slot].isUnread, !table[slot].isSizeDoubtful,
          table[slot].reportedSize == file.size,
          (try? NodeStore.state(of: file.directory, table))?.version == file.version
        else { return false }
        let (present, evicted) = table.keep(opened, of: file.identity, for: slot)
        released += evicted
        return present === opened
      }
    }
    // Closed here, outside the lock.
    withExtendedLifetime((released, contents)) {}
    contents = kept
  }

  /// Stores the contents, unless a change was reported since they were read. What changes meanwhile is invalidated.
  /// - Parameters:
  ///   - isIdle: closed meanwhile. When it opens, the kernel has no content from before a change that was reported while
  ///     it was closed.
  ///   - isBeingRead: whether a program waits for a file's READ. Until the reply its pages are locked.
  /// - Returns: how many files were stored.
  func store(
    by kernel: any KernelNotifier, _ isIdle: Latch, unless isBeingRead: (NodeID) -> Bool = { _ in false }
  ) -> UInt64 {
    isIdle.close()
    defer { isIdle.open() }
    var count: UInt64 = 0
    for (file, _, bytes) in contents
    where !isBeingRead(file.node) && nodes.isUnchanged(file.directory, since: file.version) {
      let content = UnsafeRawBufferPointer(rebasing: buffer[bytes])
      guard (try? kernel.store(content, in: file.node)) != nil else { continue }
      count += 1
      if !nodes.isUnchanged(file.directory, since: file.version) {
        try? kernel.invalidateContent(of: file.node)
      }
    }
    return count
  }
}
