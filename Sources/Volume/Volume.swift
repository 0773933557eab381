import Fuse
import Glibc
import Layers
import Posix
import Routing

/// What was taken back from the kernel since the mount began.
struct InvalidationCounters: Sendable {
  let entries = Counter()
  let attributes = Counter()
  let contents = Counter()
  /// Files that were put into the kernel's cache before anybody asked.
  let readAhead = Counter()
}

/// What the user chose for a mount.
public struct VolumeOptions: Sendable {
  /// Whether extended attributes are served; if not, they are declined once, and the kernel stops asking.
  public var servesExtendedAttributes = true
  /// How many descriptors of files and directories may be kept open at once.
  public var descriptorBudget = 1024
  /// For how long the kernel may keep what it is told.
  public var cache = CacheMode.coherent
  /// The control file.
  public var control = ControlOptions()
  /// The bundle's resources.
  public var resources = ResourceSettings()
  /// The most bytes of a READ; nil: as many as the kernel likes.
  public var largestRead: UInt32?
  /// From which size on, in bytes, files are read by the kernel itself where that can be had; nil for none.
  public var passthrough: UInt64?
  /// The unpacked contents of archives; nil where no layer is one.
  public var contents: ContentCache?
  /// Whether programs that watch the mount are told of what changes beneath it.
  public var announce = AnnounceMode.on

  /// The defaults.
  public init() {}
}

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
  let listings = RecentListings()
  let counters = InvalidationCounters()
  let requests = Locked<RequestCounters?>(nil)
  /// Whose caches there are; nil before the start and after the end.
  let kernel = Locked<(any KernelCache)?>(nil)
  /// What is to be taken back from it.
  let queue: InvalidationQueue
  private let invalidator = Locked<ThreadHandle?>(nil)
  let errands: Errands
  /// Errands that may have to wait for those.
  let refreshes: Errands
  /// What is written to the control file, if that takes long.
  let lines: Errands
  /// What reads ahead; it may wait for reads that are being answered.
  let readAheads: Errands
  let control: ControlFile
  let passthrough = Locked(PassthroughMode.unwanted)
  let resources: Resources
  /// What is being told over several pages.
  let toldTexts = Locked(ToldTexts())
  /// What compares a directory's layers for somebody.
  let comparisons: Errands
  /// What keeps the kernel's caches true; nil where they are not kept.
  let coherence: Coherence?
  /// What tells programs that watch the mount; nil where nobody does.
  let announcer: Announcer?
  /// How many of the nodes that `VolumeReplays` makes up there were.
  let phantomCount = Locked<UInt64>(0)
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
    errands = Errands(name: "errands")
    refreshes = Errands(name: "refreshes")
    lines = Errands(name: "lines")
    readAheads = Errands(name: "read ahead")
    comparisons = Errands(name: "comparisons")
    coherence = options.cache == .coherent ? try Coherence(stack.layers, queue) : nil
    announcer = coherence != nil && options.announce == .on ? try Announcer() : nil
    var silence: [Int: String] = [:]
    for (place, layer) in stack.layers.enumerated() {
      guard let type = try layer.root.silentFileSystem() else { continue }
      silence[place] = Self.silence(of: type)
    }
    self.silence = silence
  }

  /// Begins to keep the kernel's caches true. No request may be answered before.
  /// - Throws: EAGAIN when the system has no room for its threads.
  public func start(_ kernel: any KernelCache, requests: RequestCounters) throws(Errno) {
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
    settings.largestRead = options.largestRead
    return settings
  }

  // MARK: - Entries

  public func lookup(_ name: CName, in parent: NodeID, reply: consuming Reply<Answers.Entry>) {
    if let expectation = expectation(of: reply.requester),
      let answer = expectation.answer(toLookup: Place(parent: parent, name))
    {
      return pay(answer, reply)
    }
    if parent == .root, control.isNamed(name) {
      _ = reply.pay(controlEntry)
      return
    }
    if ResourceFolderNodes.contain(parent) || (parent == .root && resources.isFolder(name)) {
      return lookUpResource(name, in: parent, reply)
    }
    let entry: EntryAnswer?
    do throws(Errno) {
      let merged = try merged(of: parent)
      entry = try merged.lookup(name).map { found throws(Errno) in
        try answer(found, name, in: parent, merged)
      }
    } catch {
      reply.fail(error)
      return
    }
    guard let entry else { return payAbsent(in: parent, reply) }
    if !reply.pay(entry) { forget(entry.node, lookups: 1) }
  }

  private func payAbsent(in parent: NodeID, _ reply: consuming Reply<Answers.Entry>) {
    let timeout = options.cache.timeout(isCovered: isCovered(parent))
    if timeout > 0 { reply.payAbsent(timeout: timeout) } else { reply.fail(.noEntry) }
  }

  public func forget(_ node: NodeID, lookups: UInt64) {
    if ResourceFolderNodes.contain(node) {
      resources.folders.withLock { $0.forget(node, lookups: lookups) }
      return
    }
    // What is let go is closed outside the lock.
    let released = table.withLock { table in
      guard let slot = try? table.slot(of: node) else { return NodeTable.Released() }
      return table.forget(slot, lookups: lookups)
    }
    guard let watches = coherence?.watches else { return }
    for node in released.directories { watches.stop(node) }
    for file in released.linkedFiles { watches.stopFile(file) }
  }

  /// The answer for an entry that was found in a directory; its node has one lookup more.
  func answer(
    _ found: Entry, _ name: CName, in parent: NodeID, _ merged: MergedDirectory
  ) throws(Errno) -> EntryAnswer {
    let entryTimeout = options.cache.timeout(isCovered: isCovered(parent))
    switch found {
    case .directory(let child, let attributes):
      let node = try lookUpDirectory(name, in: parent)
      do throws(Errno) {
        let attributes = try watchedAttributes(of: node.number, hint: child) ?? attributes
        let timeout = options.cache.timeout(isCovered: isCovered(node.number))
        return EntryAnswer(
          node: node.number,
          attributes: NodeAttributes(attributes, inodeNumber: node.inodeNumber, timeout: timeout),
          timeout: entryTimeout)
      } catch {
        forget(node.number, lookups: 1)
        throw error
      }
    case .file(let layer, let attributes):
      // A type that Linux does not know cannot be shown.
      guard let kind = attributes.kind else { throw .io }
      let node = try lookUpFile(name, in: parent, attributes, kind, layer: layer)
      var (attributes, timeout) = (attributes, entryTimeout)
      if attributes.links > 1, let part = merged.part(of: layer) {
        (attributes, timeout) = linkedAttributes(of: node.number, part, name, attributes, timeout)
      }
      try tell(attributes.size, of: node.number)
      return EntryAnswer(
        node: node.number,
        attributes: NodeAttributes(attributes, inodeNumber: node.inodeNumber, timeout: timeout),
        timeout: entryTimeout)
    }
  }

  private func lookUpDirectory(
    _ name: CName, in parent: NodeID
  ) throws(Errno) -> (number: NodeID, inodeNumber: UInt64) {
    let bytes = [UInt8](bytesOf: name)
    return try table.withLock { table throws(Errno) in
      let parent = try table.slot(of: parent)
      let number = InodeNumbers.directory(parent: table[parent].inodeNumber, name: name)
      let slot = table.lookUpDirectory(bytes, in: parent, inodeNumber: number)
      return (table.number(of: slot), number)
    }
  }

  private func lookUpFile(
    _ name: CName, in parent: NodeID, _ attributes: Attributes, _ kind: FileKind, layer: Int
  ) throws(Errno) -> (number: NodeID, inodeNumber: UInt64) {
    let bytes = [UInt8](bytesOf: name)
    let number = numbers.file(device: attributes.identity.device, inode: attributes.identity.inode)
    return try table.withLock { table throws(Errno) in
      let slot = table.lookUpFile(
        attributes.identity, layer: layer, kind: kind, name: bytes, in: try table.slot(of: parent),
        inodeNumber: number)
      return (table.number(of: slot), number)
    }
  }

  /// Notes which size the kernel is about to be told of a file.
  private func tell(_ size: UInt64, of node: NodeID) throws(Errno) {
    try table.withLock { table throws(Errno) in table.tell(size, of: try table.slot(of: node)) }
  }

  /// A directory's attributes, read once its parts are watched; nil where nothing is watched.
  private func watchedAttributes(
    of directory: NodeID, hint: MergedDirectory
  ) throws(Errno) -> Attributes? {
    if coherence == nil { return nil }
    return try merged(of: directory, hint: hint).attributes()
  }

  /// The attributes of a file with several names. What happens to it by a name elsewhere is told only by a
  /// watch on the file itself.
  /// - Returns: the attributes, and the seconds for which they may be kept.
  func linkedAttributes(
    of node: NodeID, _ part: LayerDirectory, _ name: CName, _ attributes: Attributes, _ timeout: Double
  ) -> (Attributes, Double) {
    guard let watches = coherence?.watches else { return (attributes, timeout) }
    do throws(Errno) {
      _ = try part.withWatchPath(of: name) { path throws(Errno) in
        try watches.watchFile(node, at: path, follows: false)
      }
      giveBackIfForgotten(node)
      return (try part.attributes(of: name, identity: attributes.identity), timeout)
    } catch {
      // Out of watches, or replaced this moment.
      return (attributes, min(timeout, CacheMode.short))
    }
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
      throw error == .notDirectory ? .noEntry : error
    }
  }

  // MARK: - Attributes

  public func readAttributes(of node: NodeID, reply: consuming Reply<Answers.Attributes>) {
    if node == ControlFile.node {
      if let write = control.takeWhole(reply.requester) { finish(write) }
      reply.pay(control.attributes(for: reply.requester))
      return
    }
    let attributes: NodeAttributes
    do throws(Errno) {
      attributes =
        ResourceFolderNodes.contain(node)
        ? try self.attributes(ofResourceFolder: node) : try self.attributes(of: node)
    } catch {
      reply.fail(error == .noEntry ? .stale : error)
      return
    }
    reply.pay(attributes)
  }

  /// The attributes of a node of the table.
  func attributes(of node: NodeID) throws(Errno) -> NodeAttributes {
    let (isDirectory, parent) = try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      return (table[slot].kind == .directory, table.number(of: max(table[slot].parent, NodeTable.root)))
    }
    let attributes: Attributes
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
      if !isDirectory { table.tell(attributes.size, of: slot) }
      return table[slot].inodeNumber
    }
    return NodeAttributes(attributes, inodeNumber: number, timeout: timeout)
  }

  private func fileAttributes(of node: NodeID, _ timeout: Double) throws(Errno) -> (Attributes, Double) {
    let isDetached = try table.withLock { table throws(Errno) in table[try table.slot(of: node)].isDetached }
    if let file = try presentFile(of: node) {
      let attributes = try file.attributes()
      if (attributes.links == 1 && !isDetached) || coherence == nil { return (attributes, timeout) }
      return watchByItself(node, file)
        ? (try file.attributes(), timeout) : (attributes, min(timeout, CacheMode.short))
    }
    // Nobody tells of changes to a file that lost its name, unless it is watched by itself.
    let isTold = !isDetached || coherence?.watches.watchesFile(node) ?? true
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

  public func readFigures(reply: consuming Reply<Answers.Figures>) {
    let figures: statvfs
    do throws(Errno) { figures = try stack.layers[stack.layers.count - 1].fileSystemFigures() } catch {
      reply.fail(error)
      return
    }
    reply.pay(figures)
  }

  // MARK: - Changes

  public func write(
    _ bytes: UnsafeRawBufferPointer, to node: NodeID, at offset: Int64, reply: consuming Reply<Answers.Count>
  ) {
    if node == ControlFile.node {
      writeControl(bytes, at: offset, reply)
    } else {
      reply.fail(.readOnlyFileSystem)
    }
  }

  public func change(_ kind: ChangeKind, reply: consuming Reply<Answers.Done>) {
    reply.fail(.readOnlyFileSystem)
  }
}
