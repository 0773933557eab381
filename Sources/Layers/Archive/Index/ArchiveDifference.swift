import Posix

/// What is different between what a layer's archive contained and what it contains.
public struct ArchiveDifference: Sendable {
  /// What happened to an entry.
  public enum Kind: UInt8, Sendable {
    case created, deleted
    /// Another file has its name.
    case replaced
    /// Mode or time.
    case attributes
    /// The same content, but what was handed out of it may have been another.
    case content
  }
  /// A difference; what is below a folder that came or went is not told.
  public struct Item: Sendable {
    fileprivate let node: UInt32
    /// What happened.
    public let kind: Kind
    /// Whether it is, or was, a folder.
    public let isFolder: Bool
  }

  /// The differences. Where a folder takes a file's place, or the other way round, the deletion comes first.
  public private(set) var items: [Item] = []
  /// Whether the layer's own folder looks different.
  public private(set) var isRootChanged = false
  private let former: ArchiveIndex
  private let present: ArchiveIndex

  /// Whether there is none.
  public var isEmpty: Bool { items.isEmpty && !isRootChanged }

  /// - Parameter unverified: the inode numbers of files of which something wrong may have been handed out.
  init(from former: ArchiveIndex, to present: ArchiveIndex, unverified: Set<UInt64> = []) {
    self.former = former
    self.present = present
    let root = ArchiveTree.root
    isRootChanged = !former.tree[root].hasSameAttributes(as: present.tree[root])
    addDeleted()
    addOthers(unverified)
  }

  private mutating func addDeleted() {
    let matches = NodeMatches(of: former.tree, in: present.tree)
    for node in 1..<UInt32(max(1, former.tree.count)) {
      let entry = former.tree[node]
      // Only the topmost of what went.
      guard let folder = matches[entry.parent], present.tree[folder].isFolder else { continue }
      if let match = matches[node], present.tree[match].isFolder == entry.isFolder { continue }
      items.append(Item(node: node, kind: .deleted, isFolder: entry.isFolder))
    }
  }

  private mutating func addOthers(_ unverified: Set<UInt64>) {
    let matches = NodeMatches(of: present.tree, in: former.tree)
    for node in 1..<UInt32(max(1, present.tree.count)) {
      let entry = present.tree[node]
      guard let folder = matches[entry.parent], former.tree[folder].isFolder else { continue }
      if let match = matches[node], former.tree[match].isFolder == entry.isFolder {
        if entry.inode != former.tree[match].inode {
          items.append(Item(node: node, kind: .replaced, isFolder: entry.isFolder))
        } else if unverified.contains(entry.inode) {
          items.append(Item(node: node, kind: .content, isFolder: false))
        } else if !entry.hasSameAttributes(as: former.tree[match]) {
          items.append(Item(node: node, kind: .attributes, isFolder: entry.isFolder))
        }
      } else {
        items.append(Item(node: node, kind: .created, isFolder: entry.isFolder))
      }
    }
  }

  private func tree(of item: Item) -> ArchiveTree { item.kind == .deleted ? former.tree : present.tree }

  /// The name of what is different, in its folder.
  public func name(of item: Item) -> [UInt8] { tree(of: item).name(of: item.node) }

  /// The names from the layer's root to its folder.
  public func folder(of item: Item) -> [[UInt8]] {
    let tree = tree(of: item)
    return tree.path(of: tree[item.node].parent)
  }

  /// A number that items of one folder have in common.
  public func folderNumber(of item: Item) -> UInt64 {
    let tree = tree(of: item)
    return tree[tree[item.node].parent].inode
  }
}
