/// Assigns inode numbers: a path with the same content as before keeps its number, unless that is distrusted.
struct InodeAssignment: ~Copyable {
  var tree: ArchiveTree
  var folders: [UInt64: UInt32] = [:]
  var nextInode: UInt64

  /// - Parameter first: the first new number; nil for the one that follows those of `former`.
  init(
    _ tree: consuming ArchiveTree, after former: ArchiveIndex?, except distrusted: Set<UInt64>,
    from first: UInt64? = nil
  ) {
    nextInode = first ?? former?.nextInode ?? ArchiveIndex.firstInode + 1
    self.tree = tree
    var matches: NodeMatches?
    if let former { matches = NodeMatches(of: self.tree, in: former.tree) }
    var linked = LinkedFiles()
    for node in 0..<UInt32(self.tree.count) {
      if node == ArchiveTree.root {
        self.tree[node].inode = ArchiveIndex.firstInode
      } else if let number = linked.number(of: self.tree[node]) {
        self.tree[node].inode = number
      } else if let former, let match = matches?[node], isSame(node, former.tree[match]),
        !distrusted.contains(former.tree[match].inode), linked.mayUse(former.tree[match])
      {
        self.tree[node].inode = former.tree[match].inode
      } else {
        self.tree[node].inode = nextInode
        nextInode += 1
      }
      linked.insert(self.tree[node])
      if self.tree[node].isFolder { folders[self.tree[node].inode] = node }
    }
  }

  /// The numbers that a predecessor assigned: the next one, and those of the nodes.
  /// - Returns: nil if they are another tree's.
  init?(_ tree: consuming ArchiveTree, numbers: [UInt64]) {
    guard numbers.count == tree.count + 1 else { return nil }
    nextInode = numbers[0]
    self.tree = tree
    for node in 0..<UInt32(self.tree.count) {
      self.tree[node].inode = numbers[Int(node) + 1]
      if self.tree[node].isFolder { folders[self.tree[node].inode] = node }
    }
  }

  private func isSame(_ node: UInt32, _ former: ArchiveNode) -> Bool {
    tree[node].isFolder ? former.isFolder : former.hasSameContent(as: tree[node])
  }
}

/// What the names of one file of a container, and no others, have in common.
private struct LinkedContent: Hashable {
  let method: UInt16
  let offset: UInt64

  init(_ node: ArchiveNode) { (method, offset) = (node.method, node.offset) }
}

extension ArchiveTree {
  /// Has the nodes that are names of hard-linked files count the other names of theirs. To be called once, when those of them
  /// that are replaced by later entries are gone.
  mutating func countNames() {
    let linked = nodes.indices.filter { nodes[$0].otherNames > 0 }.map { UInt32($0) }
    var counts: [LinkedContent: Int] = [:]
    for node in linked { counts[LinkedContent(self[node]), default: 0] += 1 }
    for node in linked {
      self[node].otherNames = UInt8(clamping: (counts[LinkedContent(self[node])] ?? 1) - 1)
    }
  }
}

/// The files of a container with several names, which share an inode number.
private struct LinkedFiles {
  private var numbers: [LinkedContent: UInt64] = [:]
  /// Numbers of former files with several names, which at most one file continues.
  private var used: Set<UInt64> = []

  func number(of node: ArchiveNode) -> UInt64? { node.otherNames > 0 ? numbers[LinkedContent(node)] : nil }

  mutating func insert(_ node: ArchiveNode) {
    if node.otherNames > 0 { numbers[LinkedContent(node)] = node.inode }
  }

  mutating func mayUse(_ former: ArchiveNode) -> Bool {
    former.otherNames == 0 || used.insert(former.inode).inserted
  }
}

/// Matches the nodes of a tree to those of another by path.
struct NodeMatches {
  private var matches: [UInt32]
  private static let none = UInt32.max

  init(of tree: ArchiveTree, in other: ArchiveTree) {
    matches = Array(repeating: Self.none, count: tree.count)
    matches[Int(ArchiveTree.root)] = ArchiveTree.root
    // Folders precede their children.
    for node in 1..<UInt32(max(tree.count, 1)) {
      let parent = matches[Int(tree[node].parent)]
      guard parent != Self.none, other[parent].isFolder else { continue }
      matches[Int(node)] = other.find(node, of: tree, in: parent) ?? Self.none
    }
  }

  subscript(node: UInt32) -> UInt32? {
    let match = matches[Int(node)]
    return match == Self.none ? nil : match
  }
}
