import Fuse
import Glibc
import Layers
import Posix
import Routing

/// The mounted file system: the merged view of a stack of layers, node by node.
///
/// Requests are stateless: there are no file handles, a file is read by its node.
public final class Volume: FileSystem {
  /// The version that `bundlefs -V` and `user.bundlefs.version` tell.
  public static let version = "0.1.0"

  let stack: LayerStack
  let options: VolumeOptions
  let numbers = InodeNumbers()
  let table: Locked<NodeTable>
  let listings = ListingCache()
  let listingPrefetcher = ListingPrefetcher()
  let counters = InvalidationCounters()
  let requests = Locked<RequestCounters?>(nil)
  /// Whose caches there are; nil before the start and after the end.
  let kernel = Locked<(any KernelNotifier)?>(nil)
  /// What is to be taken back from it.
  let queue: InvalidationQueue
  private let invalidator = Locked<ThreadHandle?>(nil)
  let errands: SerialWorker
  /// Errands that may have to wait for those.
  let refreshes: SerialWorker
  /// What is written to the control file, if that takes long.
  let lines: SerialWorker
  /// What reads ahead; it may wait for reads that are being answered.
  let readAheads: SerialWorker
  let control: ControlFile
  let passthrough = Locked(PassthroughMode.unwanted)
  let resources: Resources
  /// What is being told over several pages.
  let pagedReplies = Locked(PagedReplies())
  /// What compares a directory's layers for somebody.
  let comparisons: SerialWorker
  /// What keeps the kernel's caches true; nil where they are not kept.
  let coherence: LayerWatcher?
  /// What tells programs that watch the mount; nil where nobody does.
  let announcer: Announcer?
  /// How many of the nodes that `VolumeReplays` makes up there were.
  let tombstoneCount = Locked<UInt64>(0)
  /// Layers whose changes nobody tells, by their places, with the reasons.
  let silence: [Int: String]

  /// A file system of these layers.
  /// - Throws: EMFILE when the user has no more inotify instances.
  public init(stack: LayerStack, options: VolumeOptions) throws(Errno) {
    self.stack = stack
    self.options = options
    control = try ControlFile(options.control)
    resources = Resources(stack, options.resources)
    table = Locked(NodeTable(budget: options.descriptorBudget))
    queue = try InvalidationQueue()
    errands = SerialWorker(name: "errands")
    refreshes = SerialWorker(name: "refreshes")
    lines = SerialWorker(name: "lines")
    readAheads = SerialWorker(name: "read ahead")
    comparisons = SerialWorker(name: "comparisons")
    coherence = options.cache == .coherent ? try LayerWatcher(stack.layers, queue) : nil
    announcer = coherence != nil && options.announce == .on ? try Announcer() : nil
    var silence: [Int: String] = [:]
    for (place, layer) in stack.layers.enumerated() {
      guard let type = try layer.root.unwatchableFileSystem() else { continue }
      silence[place] = Self.silence(of: type)
    }
    self.silence = silence
  }

  /// Begins to keep the kernel's caches true. No request may be answered before.
  /// - Throws: EAGAIN when the system has no room for its threads.
  public func start(_ kernel: any KernelNotifier, requests: RequestCounters) throws(Errno) {
    self.requests.withLock { $0 = requests }
    self.kernel.withLock { $0 = kernel }
    try options.contents?.start(threads: max(2, processorCount))
    try errands.start()
    try control.start()
    try refreshes.start()
    try lines.start()
    try readAheads.start()
    try comparisons.start()
    try announcer?.start(self, kernel)
    let thread = ThreadHandle(
      try Thread(name: "invalidator") { Invalidator(volume: self, kernel: kernel).run() })
    invalidator.withLock { $0 = thread }
    try coherence?.start(self)
  }

  /// Ends that, after what waits is carried out. Requests must still be answered meanwhile.
  public func stop() {
    coherence?.stop()
    queue.end()
    invalidator.withLock { $0 }?.join()
    announcer?.stop()
    errands.stop()
    lines.stop()
    control.stop()
    refreshes.stop()
    readAheads.stop()
    comparisons.stop()
    options.contents?.stop()
    // Its session holds this volume.
    kernel.withLock { $0 = nil }
    passthrough.withLock { $0 = .unwanted }
  }

  /// Drops everything that is cached, by the kernel and by us.
  public func invalidateAll() {
    // First what would answer, then what the kernel keeps.
    options.contents?.dropAll()
    queue.add([Invalidation(subject: .subtree(.root))])
  }

  /// What the mount's beginning agrees upon with the kernel.
  public var settings: ConnectionSettings {
    var settings = ConnectionSettings()
    settings.posixACLs = options.servesExtendedAttributes
    settings.cachesSymbolicLinks = options.cache != .none
    settings.passthroughDepth = passthroughDepth
    settings.maxRead = options.maxRead
    return settings
  }

  // MARK: - Directories

  /// The names from the root to a directory.
  /// - Throws: ENOTDIR for another kind of node.
  func path(of directory: NodeID) throws(Errno) -> [[UInt8]] {
    try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: directory)
      guard table[slot].kind == .directory else { throw .notDirectory }
      return table.path(of: slot)
    }
  }

  /// The merged directory that has a path now.
  /// - Throws: ENOENT where there is none any more.
  func directory(at path: [[UInt8]]) throws(Errno) -> MergedDirectory {
    do throws(Errno) {
      return try stack.directory(at: path)
    } catch {
      throw error == .notDirectory ? .noSuchFileOrDirectory : error
    }
  }

  // MARK: - Attributes

  public func getAttributes(of node: NodeID, reply: consuming Reply<ReplyKind.Attributes>) {
    if node == ControlFile.node {
      if let write = control.takeCompletedLine(reply.caller) { finish(write) }
      reply.send(control.attributes(for: reply.caller))
      return
    }
    let attributes: NodeAttributes
    do throws(Errno) {
      attributes =
        ResourceFolderNodes.contain(node)
        ? try self.attributes(ofResourceFolder: node) : try self.attributes(of: node)
    } catch {
      reply.fail(error == .noSuchFileOrDirectory ? .staleFileHandle : error)
      return
    }
    reply.send(attributes)
  }

  /// The attributes of a node of the table.
  func attributes(of node: NodeID) throws(Errno) -> NodeAttributes {
    let (isDirectory, parent) = try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      return (table[slot].kind == .directory, table.number(of: max(table[slot].parent, NodeTable.root)))
    }
    let attributes: FileStatus
    var timeout: Double
    if isDirectory {
      attributes = try merged(of: node).attributes()
      timeout = options.cache.timeout(isCovered: isCovered(node))
    } else {
      timeout = options.cache.timeout(isCovered: isCovered(parent))
      (attributes, timeout) = try fileAttributes(of: node, timeout)
    }
    let number = try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      if !isDirectory { table.recordReportedSize(attributes.size, of: slot) }
      return table[slot].inodeNumber
    }
    return NodeAttributes(attributes, inodeNumber: number, timeout: timeout)
  }

  private func fileAttributes(of node: NodeID, _ timeout: Double) throws(Errno) -> (FileStatus, Double) {
    let isDetached = try table.withLock { table throws(Errno) in table[try table.slot(of: node)].isDetached }
    if let file = try presentFile(of: node) {
      let attributes = try file.attributes()
      if (attributes.links == 1 && !isDetached) || coherence == nil { return (attributes, timeout) }
      return watchByItself(node, file)
        ? (try file.attributes(), timeout) : (attributes, min(timeout, CacheMode.short))
    }
    // Nobody tells of changes to a file that lost its name, unless it is watched by itself.
    let isTold = !isDetached || coherence?.watches.hasFileWatch(node) ?? true
    let timeout = isTold ? timeout : min(timeout, CacheMode.short)
    return try withPlace(of: node) { directory, name, identity throws(Errno) in
      let attributes = try directory.attributes(of: name, identity: identity)
      if attributes.links == 1 { return (attributes, timeout) }
      return linkedAttributes(of: node, directory, name, attributes, timeout)
    }
  }

  func isDirectory(_ node: NodeID) throws(Errno) -> Bool {
    try table.withLock { table throws(Errno) in table[try table.slot(of: node)].kind == .directory }
  }

  public func statfs(reply: consuming Reply<ReplyKind.Statfs>) {
    let figures: statvfs
    do throws(Errno) { figures = try stack.layers[stack.layers.count - 1].statvfs() } catch {
      reply.fail(error)
      return
    }
    reply.send(figures)
  }

  // MARK: - Changes

  public func write(
    _ bytes: UnsafeRawBufferPointer, to node: NodeID, at offset: Int64,
    reply: consuming Reply<ReplyKind.Write>
  ) {
    if node == ControlFile.node {
      writeControl(bytes, at: offset, reply)
    } else {
      reply.fail(.readOnlyFileSystem)
    }
  }

  public func modify(_ kind: ModificationKind, reply: consuming Reply<ReplyKind.Status>) {
    reply.fail(.readOnlyFileSystem)
  }
}
