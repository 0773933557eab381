import Posix

/// The differences between two versions of a layer's archive.
public struct ArchiveDifference: Sendable {
  /// The kind of a difference.
  public enum Kind: UInt8, Sendable {
    case created, deleted
    /// Another file has the name.
    case replaced
    /// Mode, mtime, owner or extended attributes.
    case attributes
  }
  /// A difference. Below a folder that was created or deleted none are listed.
  public struct Item: Sendable {
    fileprivate let node: UInt32
    /// Its kind.
    public let kind: Kind
    /// Whether it is, or was, a folder.
    public let isFolder: Bool
  }

  /// If a folder replaces a file or a file a folder, the deletion comes first.
  public private(set) var items: [Item] = []
  /// Whether the root's attributes differ.
  public private(set) var isRootChanged = false
  private let former: ArchiveIndex
  private let present: ArchiveIndex

  /// Whether there are no differences.
  public var isEmpty: Bool { items.isEmpty && !isRootChanged }

  init(from former: ArchiveIndex, to present: ArchiveIndex) {
    self.former = former
    self.present = present
    isRootChanged = !hasSameAttributes(ArchiveTree.root, ArchiveTree.root)
    addDeleted()
    addOthers()
  }

  private mutating func addDeleted() {
    let matches = NodeMatches(of: former.tree, in: present.tree)
    for node in 1..<UInt32(max(1, former.tree.count)) {
      let entry = former.tree[node]
      // Only the topmost deleted entry.
      guard let folder = matches[entry.parent], present.tree[folder].isFolder else { continue }
      if let match = matches[node], present.tree[match].isFolder == entry.isFolder { continue }
      items.append(Item(node: node, kind: .deleted, isFolder: entry.isFolder))
    }
  }

  private mutating func addOthers() {
    let matches = NodeMatches(of: present.tree, in: former.tree)
    for node in 1..<UInt32(max(1, present.tree.count)) {
      let entry = present.tree[node]
      guard let folder = matches[entry.parent], former.tree[folder].isFolder else { continue }
      if let match = matches[node], former.tree[match].isFolder == entry.isFolder {
        if entry.inode != former.tree[match].inode {
          items.append(Item(node: node, kind: .replaced, isFolder: entry.isFolder))
        } else if !hasSameAttributes(node, match) {
          items.append(Item(node: node, kind: .attributes, isFolder: entry.isFolder))
        }
      } else {
        items.append(Item(node: node, kind: .created, isFolder: entry.isFolder))
      }
    }
  }

  /// - Parameters:
  ///   - node: in the present version.
  ///   - match: the same in the former one.
  private func hasSameAttributes(_ node: UInt32, _ match: UInt32) -> Bool {
    present.tree[node].hasSameAttributes(as: former.tree[match])
      && present.attributes(ofNode: node) == former.attributes(ofNode: match)
  }

  private func tree(of item: Item) -> ArchiveTree { item.kind == .deleted ? former.tree : present.tree }

  /// The entry's name.
  public func name(of item: Item) -> [UInt8] { tree(of: item).name(of: item.node) }

  /// A folder on the path of an entry.
  public struct Folder {
    /// An identifier of the folder.
    public let number: UInt64
    public let name: [UInt8]
  }

  /// The identifier of the layer's root.
  public var rootNumber: UInt64 { ArchiveIndex.firstInode }

  /// The folders above an entry, the innermost first, up to the first whose number is known or to the root.
  /// - Returns: these folders, and the number of the one that ended the search.
  public func folders(
    above item: Item, until isKnown: (UInt64) -> Bool
  ) -> (unknown: [Folder], known: UInt64) {
    let tree = tree(of: item)
    var unknown: [Folder] = []
    var node = tree[item.node].parent
    while node != ArchiveTree.root, !isKnown(tree[node].inode) {
      unknown.append(Folder(number: tree[node].inode, name: tree.name(of: node)))
      node = tree[node].parent
    }
    return (unknown, tree[node].inode)
  }
}
