import Containers
import Fuse
import Glibc
import Posix

/// The nodes: by number, by identity (files), and by parent and name.
struct NodeTable {
  /// Slot 0 is never used, slot 1 is the root.
  var nodes: [Node]
  private(set) var recent: DescriptorLRU
  /// Files by their identity; everything by its parent and name.
  private var identities = HashIndex()
  private var places = HashIndex()
  private var names = NameArena()
  private var aliases = HardLinkNames()
  private var firstFree: UInt32 = 0
  /// What lookups freed, for the next forget to hand out.
  private var deferredRelease = ReleasedResources()
  /// How files have been read lately.
  var sequentialDetector = SequentialDetector()
  /// Where the next look at what cannot be watched begins.
  var nextRetry: UInt32 = 0
  /// Nodes in use.
  private(set) var count = 1
  static let root: UInt32 = 1
  /// Greater numbers of nodes are those of `ControlFile` and `ResourceFolderNodes`.
  private static let lastGeneration: UInt32 = (1 << 30) - 1

  /// - Parameter budget: how many nodes may hold descriptors open.
  init(budget: Int) {
    nodes = [Node(), Node(directory: InodeNumbers.root)]
    recent = DescriptorLRU(budget: budget)
  }

  /// The slot of a node's number.
  /// - Throws: ESTALE for a number that no node has (the kernel never sends one).
  func slot(of node: NodeID) throws(Errno) -> UInt32 {
    let slot = UInt32(truncatingIfNeeded: node.rawValue)
    guard slot != 0, slot < nodes.count, nodes[Int(slot)].kind != nil,
      nodes[Int(slot)].generation == UInt32(truncatingIfNeeded: node.rawValue >> 32)
    else { throw .staleFileHandle }
    return slot
  }

  /// The number of a slot's node.
  func number(of slot: UInt32) -> NodeID {
    NodeID(rawValue: UInt64(nodes[Int(slot)].generation) << 32 | UInt64(slot))
  }

  subscript(slot: UInt32) -> Node {
    _read { yield nodes[Int(slot)] }
    _modify { yield &nodes[Int(slot)] }
  }

  /// The name by which a node was found last.
  func name(of slot: UInt32) -> [UInt8] { names.name(at: nodes[Int(slot)].name) }

  /// The names from the root to a directory.
  func path(of slot: UInt32) -> [[UInt8]] {
    var path: [[UInt8]] = []
    var slot = slot
    while slot != Self.root {
      path.append(name(of: slot))
      slot = nodes[Int(slot)].parent
    }
    return path.reversed()
  }

  /// The directories' slots directly below a directory.
  func childDirectories(of slot: UInt32) -> [UInt32] {
    children(of: slot).filter { nodes[Int($0)].kind == .directory }
  }

  /// The slots of the nodes that were last found in a directory.
  func children(of slot: UInt32) -> [UInt32] {
    var children: [UInt32] = []
    var child = nodes[Int(slot)].directory?.firstChild ?? 0
    while child != 0 {
      children.append(child)
      child = nodes[Int(child)].nextSibling
    }
    return children
  }

  /// Small files beside a file that nobody has read yet: first those that were found after it, nearest first,
  /// since a directory is mostly read in the order in which it was listed; then those found before it.
  /// - Parameter largest: bytes.
  func unreadFiles(near slot: UInt32, count: Int, largest: UInt64) -> [UInt32] {
    // Bounded, since it is done with the table locked.
    var (found, steps) = ([UInt32](), 1024)
    for isForward in [true, false] {
      var next = slot
      while found.count < count, steps > 0 {
        next = isForward ? nodes[Int(next)].previousSibling : nodes[Int(next)].nextSibling
        if next == 0 { break }
        if nodes[Int(next)].isPrefetchable(upTo: largest) { found.append(next) }
        steps -= 1
      }
    }
    return found
  }

  /// The slots of the nodes that the kernel may know by a name of a directory.
  func nodes(named name: [UInt8], in parent: UInt32) -> [UInt32] {
    places.all(NodeHash.of(name, in: parent)) {
      isNamed($0, name, in: parent) && !nodes[Int($0)].isDetached
    } + aliases.nodes(at: EntryKey(parent: number(of: parent), name: name))
  }

  /// The slots of the files that were last found by a name of a directory, also of those that have lost it.
  func files(lastNamed name: [UInt8], in parent: UInt32) -> [UInt32] {
    places.all(NodeHash.of(name, in: parent)) {
      isNamed($0, name, in: parent) && nodes[Int($0)].kind != .directory
    }
  }

  /// Every name by which the kernel may know an entry of a directory.
  func knownNames(in parent: UInt32) -> Set<[UInt8]> {
    Set(children(of: parent).map { name(of: $0) }).union(aliases.names(in: number(of: parent)))
  }

  // MARK: - Lookups

  /// The node of a directory, made if need be, with one lookup more.
  mutating func lookUpDirectory(_ name: [UInt8], in parent: UInt32, inodeNumber: UInt64) -> UInt32 {
    var slot = directory(name, in: parent)
    if slot == 0 {
      slot = add(Node(directory: inodeNumber))
      move(slot, to: name, in: parent)
    }
    nodes[Int(slot)].lookups += 1
    return slot
  }

  /// The slot of a directory's node; 0 if there is none.
  func directory(_ name: [UInt8], in parent: UInt32) -> UInt32 {
    places.first(NodeHash.of(name, in: parent)) {
      nodes[Int($0)].kind == .directory && isNamed($0, name, in: parent)
    }
  }

  /// The node of a non-directory, made if need be, with one lookup more.
  mutating func lookUpFile(
    _ identity: FileIdentity, layer: Int, kind: FileKind, name: [UInt8], in parent: UInt32,
    inodeNumber: UInt64
  ) -> UInt32 {
    var slot = file(identity, layer: layer)
    if slot == 0 {
      slot = add(Node(file: identity, kind: kind, layer: layer, inodeNumber: inodeNumber))
      index(slot)
    }
    move(slot, to: name, in: parent)
    nodes[Int(slot)].lookups += 1
    return slot
  }

  /// The slot of a file's node; 0 if there is none.
  func file(_ identity: FileIdentity, layer: Int) -> UInt32 {
    identities.first(NodeHash.of(identity, layer: UInt16(layer))) {
      nodes[Int($0)].identity == identity && nodes[Int($0)].layer == layer
    }
  }

  /// Takes lookups back.
  /// - Returns: what nobody needs any more, to be let go outside the lock.
  mutating func forget(_ slot: UInt32, lookups: UInt64) -> ReleasedResources {
    let held = nodes[Int(slot)].lookups
    nodes[Int(slot)].lookups = held > lookups ? held - lookups : 0
    var released = freeIfUnused(slot)
    released.append(deferredRelease)
    deferredRelease = ReleasedResources()
    return released
  }

  /// Notes which size the kernel is about to be told of a file.
  mutating func recordReportedSize(_ size: UInt64, of slot: UInt32) {
    if let told = nodes[Int(slot)].reportedSize, told != size { nodes[Int(slot)].hadSeveralSizes = true }
    nodes[Int(slot)].reportedSize = size
  }

  /// Makes a file's node, which nobody has read from yet, stand for the file that has its name now.
  mutating func rebind(_ slot: UInt32, to identity: FileIdentity, layer: Int, inodeNumber: UInt64) {
    unindex(slot)
    nodes[Int(slot)].isUnlinked = false
    nodes[Int(slot)].identity = identity
    nodes[Int(slot)].layer = UInt16(layer)
    nodes[Int(slot)].inodeNumber = inodeNumber
    nodes[Int(slot)].wasRebound = true
    if file(identity, layer: layer) == 0 { index(slot) }
  }

  /// Remembers that a file left a name. One that has another name is there from now on. Else a node that was
  /// read from stays with the file, and has nothing to do any more with what happens to the name; any other is
  /// only a name and stays with that.
  mutating func detach(_ slot: UInt32, from name: [UInt8], in parent: UInt32) {
    if aliases.remove(slot, at: EntryKey(parent: number(of: parent), name: name)) { return }
    if moveToHardLinkName(slot) { return }
    if nodes[Int(slot)].isPinned {
      nodes[Int(slot)].isDetached = true
    } else {
      nodes[Int(slot)].isUnlinked = true
    }
  }

  /// A further name of a file.
  mutating func hardLinkName(of slot: UInt32) -> EntryKey? {
    while let place = aliases.first(of: slot) {
      if (try? self.slot(of: place.parent)) != nil { return place }
      _ = aliases.remove(slot, at: place)
    }
    return nil
  }

  /// Forgets a further name of a file, which it does not have.
  mutating func removeHardLinkName(_ place: EntryKey, of slot: UInt32) { _ = aliases.remove(slot, at: place) }

  /// Makes a further name of a file the one by which it is reached, in place of the former.
  /// - Returns: false if it has none.
  mutating func moveToHardLinkName(_ slot: UInt32) -> Bool {
    guard let place = hardLinkName(of: slot), let parent = try? self.slot(of: place.parent) else {
      return false
    }
    _ = aliases.remove(slot, at: place)
    nodes[Int(slot)].isDetached = true
    move(slot, to: place.name, in: parent)
    return true
  }

  // MARK: - Descriptors

  /// The node's open file, which becomes a most recent one.
  mutating func useFile(of slot: UInt32) -> OpenFile? {
    guard let file = nodes[Int(slot)].file else { return nil }
    recent.touch(slot, in: nodes)
    return file
  }

  /// Keeps an open file for a node.
  /// - Returns: the file to use, which is another one if there was one already, nil if the node stands for
  ///   another file by now; and what is beyond the budget, to be let go outside the lock.
  mutating func keep(
    _ file: OpenFile, of identity: FileIdentity, for slot: UInt32
  ) -> (file: OpenFile?, evicted: [AnyObject]) {
    if let present = useFile(of: slot) { return (present, []) }
    guard nodes[Int(slot)].identity == identity else { return (nil, []) }
    nodes[Int(slot)].file = file
    nodes[Int(slot)].isPinned = true
    recent.touch(slot, in: nodes)
    return (file, recent.evict(in: &nodes))
  }

  /// Notes that a directory's `merged` was set or used.
  /// - Returns: what is beyond the budget, to be let go outside the lock.
  mutating func touchDirectory(_ slot: UInt32) -> [AnyObject] {
    recent.touch(slot, in: nodes)
    return recent.evict(in: &nodes)
  }

  /// Lets go of what a node holds.
  mutating func release(_ slot: UInt32) -> AnyObject? { recent.remove(slot, in: &nodes) }

  /// Lets go of what the least recent nodes hold.
  mutating func evict(_ count: Int) -> [AnyObject] { recent.evict(atLeast: count, in: &nodes) }

  // MARK: - Slots

  /// What freed nodes had, to be let go outside the lock.
  struct ReleasedResources {
    var held: [AnyObject] = []
    /// Directories whose watches nobody needs any more.
    var directories: [NodeID] = []
    /// Files that may have watches of their own.
    var linkedFiles: [NodeID] = []

    mutating func append(_ other: ReleasedResources) {
      held += other.held
      directories += other.directories
      linkedFiles += other.linkedFiles
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
    count += 1
    return slot
  }

  /// Notes where a node was found. A file that was found elsewhere before may be there as well.
  private mutating func move(_ slot: UInt32, to name: [UInt8], in parent: UInt32) {
    let former = nodes[Int(slot)].parent
    if isNamed(slot, name, in: parent) {
      nodes[Int(slot)].isDetached = false
      nodes[Int(slot)].isUnlinked = false
      return
    }
    let place = EntryKey(parent: number(of: parent), name: name)
    _ = aliases.remove(slot, at: place)
    if former != 0 {
      if !nodes[Int(slot)].isDetached, !nodes[Int(slot)].isUnlinked {
        aliases.add(slot, at: EntryKey(parent: number(of: former), name: self.name(of: slot)))
      }
      places.remove(slot)
      names.remove(nodes[Int(slot)].name)
      unlinkFromParent(slot)
    }
    nodes[Int(slot)].parent = parent
    nodes[Int(slot)].name = names.add(name)
    nodes[Int(slot)].isDetached = false
    nodes[Int(slot)].isUnlinked = false
    linkToParent(slot)
    places.insert(slot, NodeHash.of(name, in: parent))
    // The former directory may only have waited for its last child.
    if former != 0 { deferredRelease.append(freeIfUnused(former)) }
  }

  private mutating func linkToParent(_ slot: UInt32) {
    let parent = nodes[Int(slot)].parent
    let next = nodes[Int(parent)].directory?.firstChild ?? 0
    nodes[Int(slot)].nextSibling = next
    nodes[Int(slot)].previousSibling = 0
    if next != 0 { nodes[Int(next)].previousSibling = slot }
    nodes[Int(parent)].directory?.firstChild = slot
    nodes[Int(parent)].directory?.children += 1
  }

  private mutating func unlinkFromParent(_ slot: UInt32) {
    let (parent, next) = (nodes[Int(slot)].parent, nodes[Int(slot)].nextSibling)
    let previous = nodes[Int(slot)].previousSibling
    if next != 0 { nodes[Int(next)].previousSibling = previous }
    if previous != 0 {
      nodes[Int(previous)].nextSibling = next
    } else {
      nodes[Int(parent)].directory?.firstChild = next
    }
    nodes[Int(parent)].directory?.children -= 1
  }

  private mutating func freeIfUnused(_ first: UInt32) -> ReleasedResources {
    var released = ReleasedResources()
    var slot = first
    while slot != Self.root, nodes[Int(slot)].lookups == 0, nodes[Int(slot)].children == 0 {
      let parent = nodes[Int(slot)].parent
      if let held = recent.remove(slot, in: &nodes) { released.held.append(held) }
      if nodes[Int(slot)].kind == .directory {
        released.directories.append(number(of: slot))
      } else {
        released.linkedFiles.append(number(of: slot))
      }
      unindex(slot)
      places.remove(slot)
      names.remove(nodes[Int(slot)].name)
      aliases.remove(slot)
      unlinkFromParent(slot)
      nodes[Int(slot)] = Node(
        generation: (nodes[Int(slot)].generation + 1) & Self.lastGeneration, nextFree: firstFree)
      firstFree = slot
      count -= 1
      slot = parent
    }
    return released
  }

  // MARK: - Hashes

  private func isNamed(_ slot: UInt32, _ name: [UInt8], in parent: UInt32) -> Bool {
    nodes[Int(slot)].parent == parent && names.has(name, at: nodes[Int(slot)].name)
  }

  private mutating func index(_ slot: UInt32) {
    nodes[Int(slot)].isIndexed = true
    identities.insert(slot, NodeHash.of(nodes[Int(slot)].identity, layer: nodes[Int(slot)].layer))
  }

  private mutating func unindex(_ slot: UInt32) {
    guard nodes[Int(slot)].isIndexed else { return }
    identities.remove(slot)
    nodes[Int(slot)].isIndexed = false
  }
}

extension NodeTable {
  /// What the names take, for tests.
  var nameBytes: Int { names.size }

  /// Holds the invariants of `Node` against the whole table, for tests.
  func checkInvariants() -> [String] {
    var faults: [String] = []
    var used = 0
    for (slot, node) in nodes.enumerated() where slot != 0 && node.kind != nil {
      used += 1
      let listed = children(of: UInt32(slot))
      if node.children != listed.count {
        faults.append("node \(slot): \(node.children) children, \(listed.count) listed")
      }
      if listed.contains(where: { nodes[Int($0)].parent != slot }) {
        faults.append("node \(slot): a child of another's")
      }
      if slot != Self.root, node.lookups == 0, node.children == 0 { faults.append("node \(slot) is unused") }
      if node.file != nil, !node.isPinned { faults.append("node \(slot) has a file but has not begun") }
      if slot != Self.root, !node.isDetached,
        !nodes(named: name(of: UInt32(slot)), in: node.parent).contains(UInt32(slot))
      {
        faults.append("node \(slot) is not found by its name")
      }
      let found = identities.all(NodeHash.of(node.identity, layer: node.layer)) { $0 == slot }
      if found.count != (node.isIndexed ? 1 : 0) {
        faults.append("node \(slot): found \(found.count) times by its identity")
      }
    }
    if used != count { faults.append("count \(count), not \(used)") }
    return faults + recent.checkInvariants(nodes)
  }
}
