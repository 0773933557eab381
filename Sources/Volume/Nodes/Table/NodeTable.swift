import Containers
import Fuse
import Layers
import Posix

/// The nodes, found by their numbers, files also by their identities, and all by parent and name.
///
/// The numbers of this file system:
///
/// | number | stands for | while |
/// |---|---|---|
/// | slot, `UInt32` | a place in `nodes` | a node is in it |
/// | generation, 30 bits | how often the slot was used before | the slot exists |
/// | `NodeID`, generation in the upper 32 bits, slot in the lower | a node, to the kernel; above the last generation the control file, `rsrc:` and tombstones | the kernel has lookups of it, or a child has |
/// | inode number, 32 bits (`InodeNumbers`) | a file, to programs: `st_ino` | the file exists, also after FORGET |
/// | `FileIdentity` | a file of a layer: device, inode number, and birth time or rights | the file exists |
/// | layer index, `Int` | a layer's position in the stack, 0 at the top; retired layers follow | the stack is the same |
/// | `LayerID` | a layer, to successors | the mount exists |
///
/// Functions that remove resources return them, so that the caller closes descriptors without holding the
/// table's lock.
struct NodeTable {
  /// Slot 0 is never used, slot 1 is the root.
  var nodes: NodeSlots
  var descriptors: DescriptorLRU
  /// Files by identity.
  var identities = HashIndex()
  /// All nodes but the root by parent and name.
  var entries = HashIndex()
  var names = NameArena()
  var hardLinks = HardLinkNames()
  var firstFree: UInt32 = 0
  /// What lookups released; the next `forget` returns it.
  var deferredRelease = ReleasedResources()
  /// The directories that watches do not cover.
  var uncovered = PollOrder()
  /// The files that need watches of their own, since they have several hard links or none, and have none.
  var uncoveredFiles = PollOrder()
  /// How many barriers have marked the uncovered nodes.
  var barriers = 0
  /// The directories that have lost their names and that programs still stand in.
  var namelessDirectories: [UInt32: NamelessDirectory] = [:]
  /// The directories that lead to mounts inside this one, where case does not count.
  var mounted: Set<UInt32> = []
  /// The rights of files that the kernel was given.
  var reportedRights = ReportedRights()
  /// The number of used slots.
  var count = 1
  /// Where case does not count in names: then `entries` has the nodes by what their spellings have in common.
  let spellings: KnownSpellings?
  /// Whether a directory has one node for all spellings of its name: changes through the mount then have one directory, whose
  /// lock the kernel holds for them.
  let sharesDirectories: Bool
  /// Whether a file with several hard links in a layer below the upper one has a node for each of its names: a change tells
  /// the node, not the name, and only one name gets the copy.
  let separatesHardLinks: Bool
  /// Whether tables of strings are merged, to which string catalogs in the directory above contribute.
  let mergesTables: Bool
  /// Where a successor finds the nodes; nil if none is to come.
  let memory: NodeMemory?
  static let root: UInt32 = 1
  /// Node numbers with a greater generation belong to `ControlFile`, `ResourceDirectoryNodes` and tombstones.
  private static let lastGeneration: UInt32 = (1 << 30) - 1

  /// - Parameters:
  ///   - memory: what a predecessor has recorded there is restored.
  ///   - layers: those of the files that it has open.
  init(
    budget: Int, isWritable: Bool = false, spellings: KnownSpellings? = nil, memory: NodeMemory? = nil,
    layers: [Layer] = [], mergesTables: Bool = false
  ) {
    self.mergesTables = mergesTables
    self.memory = memory
    self.spellings = spellings
    sharesDirectories = isWritable && spellings != nil
    separatesHardLinks = isWritable
    nodes = NodeSlots([Node(), Node(directory: InodeNumbers.root)])
    descriptors = DescriptorLRU(budget: budget, keepsLost: isWritable)
    names = NameArena(shared: memory?.names)
    hardLinks = HardLinkNames(isRecorded: memory != nil, foldsNames: spellings != nil)
    guard let memory else { return }
    restore(from: memory, layers)
    nodes.isRecorded = true
  }

  /// Records what has changed, so that it outlives this process; to be called before anything is replied.
  mutating func record() {
    guard let memory, !nodes.changed.isEmpty || hardLinks.hasChanged else { return }
    // A name is added before another one goes, so that a death in between loses none.
    hardLinks.recordAdditions(in: memory, &names)
    memory.write(nodes.changed, of: nodes)
    nodes.forgetChanges()
    hardLinks.recordRemovals(in: memory, &names)
    names.reclaim()
  }

  /// - Throws: ESTALE for a number that no node has; the kernel never sends one.
  func slot(of node: NodeID) throws(Errno) -> UInt32 {
    let slot = UInt32(truncatingIfNeeded: node.rawValue)
    guard slot != 0, slot < nodes.count, nodes[Int(slot)].kind != nil,
      nodes[Int(slot)].generation == UInt32(truncatingIfNeeded: node.rawValue >> 32)
    else { throw .staleFileHandle }
    return slot
  }

  func number(of slot: UInt32) -> NodeID {
    NodeID(rawValue: UInt64(nodes[Int(slot)].generation) << 32 | UInt64(slot))
  }

  subscript(slot: UInt32) -> Node {
    _read { yield nodes[Int(slot)] }
    _modify { yield &nodes[Int(slot)] }
  }

  // MARK: - Lookups

  /// Finds or adds a directory's node and increments its lookup count.
  mutating func lookUpDirectory(_ name: [UInt8], in parent: UInt32, inodeNumber: UInt64) -> UInt32 {
    var slot = directory(name, in: parent)
    if slot == 0 {
      slot = add(Node(directory: inodeNumber))
      move(slot, to: name, in: parent)
    }
    nodes[Int(slot)].lookups += 1
    return slot
  }

  /// - Returns: 0 if there is none of this spelling, or of any where all share a node.
  func directory(_ name: [UInt8], in parent: UInt32) -> UInt32 {
    entries.first(hash(name, in: parent)) {
      guard nodes[Int($0)].kind == .directory else { return false }
      return isNamed($0, name, in: parent) || (sharesDirectories && isSpelling(name, of: $0, in: parent))
    }
  }

  /// Finds or adds a non-directory's node and increments its lookup count.
  /// - Parameter soleSize: the size in bytes of a file with one hard link; nil for one with several.
  mutating func lookUpFile(
    _ identity: FileIdentity, layer: Int, kind: FileKind, name: [UInt8], in parent: UInt32,
    inodeNumber: UInt64, soleSize: UInt64? = nil
  ) -> UInt32 {
    var slot = file(identity, layer: layer, named: name, in: parent, isSole: soleSize != nil)
    if slot != 0, let soleSize, !isNamed(slot, name, in: parent), !isPathSpelling(name, of: slot, in: parent)
    {
      if separate(slot, renamedTo: name, in: parent, size: soleSize) { slot = 0 }
    }
    if slot == 0 {
      slot = add(Node(file: identity, kind: kind, layer: layer, inodeNumber: inodeNumber))
      index(slot)
    }
    if soleSize == nil { markHardLinks(slot) }
    move(slot, to: name, in: parent)
    nodes[Int(slot)].lookups += 1
    return slot
  }

  /// Makes room for a new node where a file with one hard link has another name than at its last lookup, and its
  /// node is no longer safe to use. Programs write a temporary file and then rename it.
  ///
  /// - The kernel may take a former size for current: the change is not invalidated yet, and the kernel drops a
  ///   reply that another one overtook. It reads a file of size 0 as empty, without a READ.
  /// - The node may be another file's, with the same inode number, that was replaced just now.
  /// - Returns: false if the node is that of the new name, too.
  private mutating func separate(
    _ slot: UInt32, renamedTo name: [UInt8], in parent: UInt32, size: UInt64
  ) -> Bool {
    let mayBeAnother = nodes[Int(slot)].identity.mayRecur(at: .now)
    let isSizeSure = nodes[Int(slot)].reportedSize == size && !nodes[Int(slot)].hadSeveralSizes
    if !mayBeAnother, isSizeSure { return false }
    unindex(slot)
    // Programs that have opened the file by its former name still reach it.
    if !mayBeAnother { hardLinks.add(slot, at: EntryKey(parent: number(of: parent), name: name)) }
    return true
  }

  /// Decrements the lookup count and frees the nodes that become unused.
  mutating func forget(_ slot: UInt32, lookups: UInt64) -> ReleasedResources {
    let former = nodes[Int(slot)].lookups
    nodes[Int(slot)].lookups = former > lookups ? former - lookups : 0
    var released = freeIfUnused(slot)
    released.append(deferredRelease)
    deferredRelease = ReleasedResources()
    return released
  }

  /// Records the size of a file that the next reply gives to the kernel.
  /// - Returns: whether it is the size of the last reply, or the first one. Else the kernel must not cache the
  ///   attributes, since the replies may overtake each other.
  @discardableResult
  mutating func recordReportedSize(_ size: UInt64, of slot: UInt32) -> Bool {
    let former = nodes[Int(slot)].reportedSize
    nodes[Int(slot)].reportedSize = size
    guard let former, former != size else { return true }
    nodes[Int(slot)].hadSeveralSizes = true
    return false
  }

  /// Rebinds an unread file's node to the file that its name refers to now.
  mutating func rebind(
    _ slot: UInt32, to identity: FileIdentity, layer: Int, isSole: Bool, inodeNumber: UInt64
  ) {
    unindex(slot)
    nodes[Int(slot)].isUnlinked = false
    nodes[Int(slot)].identity = identity
    nodes[Int(slot)].layer = UInt16(layer)
    nodes[Int(slot)].inodeNumber = inodeNumber
    nodes[Int(slot)].wasRebound = true
    nodes[Int(slot)].hadHardLinks = false
    memory?.set(.unknown, of: slot)
    let (name, parent) = (name(of: slot), nodes[Int(slot)].parent)
    if file(identity, layer: layer, named: name, in: parent, isSole: isSole) == 0 { index(slot) }
    if !isSole { markHardLinks(slot) }
  }

  /// The inode numbers of the nodes that `InodeNumbers` has to keep.
  func hashedNumbers() -> Set<UInt64> {
    Set(nodes.lazy.filter { $0.kind != nil && InodeNumbers.isHashed($0.inodeNumber) }.map(\.inodeNumber))
  }

  // MARK: - Descriptors

  /// The node's open file, which becomes the most recently used one.
  mutating func useFile(of slot: UInt32) -> LayerFile? {
    guard let file = nodes[Int(slot)].file else { return nil }
    descriptors.touch(slot, in: nodes)
    return file
  }

  /// Stores an open file in a node and pins the node.
  /// - Returns: the file to use, which is the one stored before if there was one, or nil if the node was rebound
  ///   to another file; and what was evicted.
  mutating func keep(
    _ file: LayerFile, of identity: FileIdentity, for slot: UInt32
  ) -> (file: LayerFile?, evicted: [AnyObject]) {
    if let present = useFile(of: slot) { return (present, []) }
    guard nodes[Int(slot)].identity == identity else { return (nil, []) }
    nodes[Int(slot)].file = file
    nodes[Int(slot)].pin()
    descriptors.touch(slot, in: nodes)
    return (file, descriptors.evict(in: &nodes))
  }

  /// Marks a directory's `merged` as just used; returns what was evicted.
  mutating func touchDirectory(_ slot: UInt32) -> [AnyObject] {
    descriptors.touch(slot, in: nodes)
    return descriptors.evict(in: &nodes)
  }

  /// Sets what a directory consists of; returns what it held open before.
  mutating func set(_ resolved: NodeStore.ResolvedDirectory, of slot: UInt32) -> AnyObject? {
    guard let state = nodes[Int(slot)].directory else { return nil }
    let former = release(slot)
    // It can come to have its former parts again.
    if state.wasResolved, state.parts != resolved.parts { memory?.set(.unknown, of: slot) }
    state.parts = resolved.parts
    state.place = resolved.found.above.flatMap { above in resolved.merged?.place(in: above) }
    state.merged = resolved.merged
    state.needsRefresh = false
    state.wasResolved = true
    if state.isCovered, !resolved.isCovered { state.mayHaveStaleNegatives = true }
    state.isCovered = resolved.isCovered
    state.uncachedReason = resolved.fallback
    recordCoverage(of: slot)
    return former
  }

  /// Makes a directory unresolved; returns what it held open and the parts that it had.
  mutating func unresolve(_ slot: UInt32) -> (former: AnyObject?, parts: [PartIdentity]) {
    guard let state = nodes[Int(slot)].directory else { return (nil, []) }
    let parts = state.parts ?? []
    memory?.set(.unknown, of: slot)
    state.parts = nil
    state.needsRefresh = false
    if state.isCovered { state.mayHaveStaleNegatives = true }
    state.isCovered = false
    recordCoverage(of: slot)
    return (release(slot), parts)
  }

  /// The layers that take part in a directory, as far as that is known.
  func layers(of slot: UInt32) -> Set<Int> { Set(nodes[Int(slot)].directory?.parts?.map(\.layer) ?? []) }

  private mutating func recordCoverage(of slot: UInt32) {
    if nodes[Int(slot)].directory?.isUncovered == true {
      uncovered.insert(slot)
    } else {
      uncovered.remove(slot)
    }
  }

  mutating func release(_ slot: UInt32) -> AnyObject? { descriptors.remove(slot, in: &nodes) }

  /// Removes what at least `count` of the least recently used nodes hold open.
  mutating func evict(_ count: Int) -> [AnyObject] { descriptors.evict(atLeast: count, in: &nodes) }

  // MARK: - Slots

  struct ReleasedResources {
    var objects: [AnyObject] = []
    /// Freed directories, whose watches are to be removed.
    var directories: [NodeID] = []
    /// Freed files, which may have watches of their own.
    var files: [NodeID] = []

    mutating func append(_ other: ReleasedResources) {
      objects += other.objects
      directories += other.directories
      files += other.files
    }
  }

  private mutating func add(_ node: Node) -> UInt32 {
    var node = node
    var slot = firstFree
    if slot == 0 {
      slot = UInt32(nodes.count)
      nodes.append(node)
    } else {
      firstFree = nodes[Int(slot)].nextSibling
      node.generation = nodes[Int(slot)].generation
      nodes[Int(slot)] = node
    }
    memory?.set(.none, of: slot)
    count += 1
    return slot
  }

  /// Frees a node that has neither lookups nor children, then each ancestor that becomes unused by that.
  mutating func freeIfUnused(_ first: UInt32) -> ReleasedResources {
    var released = ReleasedResources()
    var slot = first
    while slot != Self.root, nodes[Int(slot)].lookups == 0, nodes[Int(slot)].children == 0 {
      let parent = nodes[Int(slot)].parent
      if let object = descriptors.remove(slot, in: &nodes) { released.objects.append(object) }
      if nodes[Int(slot)].kind == .directory {
        released.directories.append(number(of: slot))
      } else {
        released.files.append(number(of: slot))
      }
      free(slot)
      slot = parent
    }
    return released
  }

  private mutating func free(_ slot: UInt32) {
    unindex(slot)
    removeName(slot)
    hardLinks.remove(slot)
    uncovered.remove(slot)
    uncoveredFiles.remove(slot)
    if !mounted.isEmpty { mounted.remove(slot) }
    if !namelessDirectories.isEmpty { namelessDirectories[slot] = nil }
    let generation = (nodes[Int(slot)].generation + 1) & Self.lastGeneration
    nodes[Int(slot)] = Node(generation: generation, nextFree: firstFree)
    firstFree = slot
    count -= 1
  }

  mutating func index(_ slot: UInt32) {
    nodes[Int(slot)].isIndexed = true
    identities.insert(slot, nodes[Int(slot)].identityHash)
  }

  mutating func unindex(_ slot: UInt32) {
    guard nodes[Int(slot)].isIndexed else { return }
    identities.remove(slot)
    nodes[Int(slot)].isIndexed = false
  }
}
