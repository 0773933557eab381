import Fuse
import Layers
import Posix
import Synchronization

/// The nodes that the kernel knows, and the files to which they refer: a directory's parts in the layers, a file's descriptor
/// or its name in a layer.
///
/// The store knows no FUSE request; the types in `Operations` answer those. The table's lock is never held during
/// a call on a layer, nor while anything that the table released is closed.
final class NodeStore: Sendable {
  let stack: LayerStack
  private let numbers: InodeNumbers
  let table: RecordedNodeTable
  let negatives = Locked(NegativeReplies())
  /// nil with `cache=none` and `cache=SECONDS`: then nothing is watched and only the kernel caches.
  let watcher: (any NodeWatcher)?
  private let cache: CacheMode
  /// Whether the topmost layer, the upper layer, takes changes.
  let isWritable: Bool
  /// Whether users may enter the mount other than the one that mounted.
  let isShared: Bool
  /// Whether the kernel can be asked for the size that it has of a file: not where no path leads into the mount.
  let knowsKernelSizes: Bool
  /// nil on a read-only mount, and where events of our own changes cannot be told.
  let lookupObserver: (any LookupObserver)?
  /// Layers on file systems whose changes inotify does not report, by index, with the reason.
  let unwatchableLayers: [Int: String]
  /// The spellings that the kernel may have cached beside those of the listings; nil if case counts.
  let spellings: KnownSpellings?
  let cookies: ListingCookies
  let indexes: NameIndexes
  let retried = RetriedNames()
  /// nil without `mtime=visible`.
  let visibleTimes: VisibleTimes?
  /// nil if the layers' owners and permissions are shown.
  let shownOwners: ShownOwners?
  /// nil unless programs may write to files past the daemon.
  let directWriters = Locked<(any DirectWriters)?>(nil)
  /// When the mount last removed an entry, in seconds of the monotonic clock.
  let lastRemoval = Atomic<Int64>(.min)
  /// Whether space that was waited for has not become free since then.
  let waitsInVain = Atomic(false)

  /// - Throws: what fstatfs(2) of a layer's root answers.
  init(
    _ stack: LayerStack, watcher: (any NodeWatcher)?, cache: CacheMode, budget: Int,
    isWritable: Bool = false, isShared: Bool = true, knowsKernelSizes: Bool = true,
    lookupObserver: (any LookupObserver)? = nil, memory: NodeMemory? = nil, visibleTimes: VisibleTimes? = nil,
    shownOwners: ShownOwners? = nil
  ) throws(Errno) {
    self.stack = stack
    (self.visibleTimes, self.shownOwners) = (visibleTimes, shownOwners)
    self.lookupObserver = lookupObserver
    self.watcher = watcher
    self.cache = cache
    self.isWritable = isWritable
    self.isShared = isShared
    self.knowsKernelSizes = knowsKernelSizes
    numbers = InodeNumbers(memory: memory, foldsNames: stack.foldsNames)
    cookies = ListingCookies(memory: memory?.memory)
    indexes = NameIndexes(foldsNames: stack.foldsNames)
    spellings = stack.foldsNames ? KnownSpellings(memory: memory) : nil
    if stack.foldsNames, isWritable { stack.shareSpellings() }
    table = RecordedNodeTable(
      NodeTable(
        budget: budget, isWritable: isWritable, spellings: spellings, memory: memory,
        layers: stack.all.map(\.layer), mergesTables: stack.tables != nil))
    var unwatchable: [Int: String] = [:]
    for (index, layer) in stack.layers.enumerated() {
      guard let type = try layer.unwatchableFileSystem() else { continue }
      unwatchable[index] = Self.unwatchableReason(type)
    }
    unwatchableLayers = unwatchable
    if memory != nil { adoptFilesOfArchives() }
  }

  private func adoptFilesOfArchives() {
    for (index, layer) in stack.all {
      if let archive = layer.archive { adoptFiles(of: archive, index) }
    }
  }

  private func adoptFiles(of archive: ArchiveLayer, _ layer: Int) {
    let known = table.withLock { table in
      (1..<UInt32(table.nodes.count)).filter {
        table[$0].isPinned && table[$0].layer == layer && table[$0].kind != nil
      }.map { ($0, table[$0].identity.inode) }
    }
    let files = archive.takeFormerFiles(known: Set(known.map(\.1)))
    table.withLock { table in
      for (slot, inode) in known { if let file = files[inode] { table.adopt(file, for: slot) } }
    }
  }

  /// Seconds for which the kernel may keep the entries of a directory, present or absent.
  func timeout(in directory: NodeID) -> Double { cache.timeout(isCovered: isCovered(directory)) }

  /// The inode number of a non-directory in the mount. The caller must not hold the table's lock.
  func inodeNumber(device: UInt64, inode: UInt64) -> UInt64 {
    let number = numbers.file(device: device, inode: inode)
    if InodeNumbers.isHashed(number) { dropUnknownNumbers() }
    return number
  }

  /// The inode number of a directory that has none of its own: the same for all spellings of the name.
  /// - Parameter parent: the number of the directory above.
  func inodeNumber(ofDirectory name: [UInt8], in parent: UInt64) -> UInt64 {
    numbers.directory(parent: parent, name: spellings == nil ? name : NameFolding.key(of: name))
  }

  /// Bounds the memory that numbers of unknown entries take. The caller must not hold the table's lock.
  func dropUnknownNumbers() {
    if numbers.isCrowded { numbers.drop(except: table.withLock { $0.hashedNumbers() }) }
  }

  /// The names from the root to a directory.
  /// - Throws: ENOTDIR for another kind of node; ESTALE.
  func path(of directory: NodeID) throws(Errno) -> [[UInt8]] {
    try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: directory)
      guard table[slot].kind == .directory else { throw .notDirectory }
      return table.path(of: slot)
    }
  }

  /// - Throws: ESTALE.
  func kind(of node: NodeID) throws(Errno) -> FileKind? {
    try table.withLock { table throws(Errno) in table[try table.slot(of: node)].kind }
  }

  func isDirectory(_ node: NodeID) throws(Errno) -> Bool { try kind(of: node) == .directory }

  /// Takes lookups back, and frees the nodes that nothing needs any more.
  func forget(_ node: NodeID, lookups: UInt64) {
    // What the table releases is closed here, outside its lock.
    let released = table.withLock { table in
      guard let slot = try? table.slot(of: node) else { return NodeTable.ReleasedResources() }
      return table.forget(slot, lookups: lookups)
    }
    if let spellings { for node in released.directories { spellings.removeAll(in: node) } }
    guard let watcher else { return }
    for node in released.directories {
      watcher.unwatch(node, except: [])
      indexes.remove(node)
    }
    for file in released.files { watcher.unwatchFile(file) }
  }

  /// Takes one lookup of each entry back.
  func forget(_ entries: some Sequence<EntryReply?>) {
    for case let entry? in entries { forget(entry.node, lookups: 1) }
  }
}
