import Glibc
import Posix

/// What an archive contained at one time, read once from its table of contents.
final class ArchiveIndex: Sendable {
  let source: ArchiveSource
  let tree: ArchiveTree
  let skipped: [SkippedNames]
  /// Entries in the table of contents.
  let entries: Int
  /// What was put before the archive's beginning, and where its table of contents begins: bytes.
  let prefixLength: UInt64
  let dataEnd: UInt64
  /// Folders by their inode numbers.
  private let folders: [UInt64: UInt32]
  /// The first inode number that no node of this layer ever had.
  let nextInode: UInt64

  /// Below this, inode numbers have other meanings in a mount.
  static let firstInode: UInt64 = 16

  fileprivate init(_ builder: consuming ArchiveIndexBuilder, numbers: consuming InodeAssignment) {
    source = builder.source
    tree = numbers.tree
    skipped = builder.skipped.filter { $0.count > 0 }
    entries = builder.entries
    prefixLength = builder.directory.prefixLength
    dataEnd = builder.directory.start
    folders = numbers.folders
    nextInode = numbers.nextInode
  }

  /// Reads an archive.
  /// - Parameters:
  ///   - folder: the names from the archive's root to the folder that is the layer.
  ///   - former: what the layer contained before: what is the same in both keeps its inode number.
  ///   - progress: called now and then with the bytes read and all of them.
  static func read(
    _ source: ArchiveSource, folder: [[UInt8]], former: ArchiveIndex? = nil,
    progress: (UInt64, UInt64) -> Void = { _, _ in }
  ) throws(ArchiveError) -> ArchiveIndex {
    let directory = try CentralDirectory.find(in: source)
    var builder = ArchiveIndexBuilder(source, directory, folder: folder)
    try directory.forEachRecord(in: source, progress: progress) { builder.add($0) }
    guard source.isUnchanged else { throw .changing }
    try builder.finish()
    let numbers = InodeAssignment(builder.takeTree(), after: former)
    return ArchiveIndex(builder, numbers: numbers)
  }

  /// The folder with an inode number.
  func folder(_ inode: UInt64) -> UInt32? { folders[inode] }

  /// The node of a name in a folder.
  func find(_ name: CName, in folder: UInt32) -> UInt32? {
    tree.find(UnsafeRawBufferPointer(start: name, count: strlen(name)), in: folder)
  }

  /// How many files, links included, and how many folders there are.
  var counts: (files: Int, folders: Int) { (tree.count - folders.count, folders.count - 1) }
}

/// The inode numbers of a tree: those of a former one where a path has the same content still.
private struct InodeAssignment: ~Copyable {
  var tree: ArchiveTree
  var folders: [UInt64: UInt32] = [:]
  var nextInode: UInt64

  init(_ tree: consuming ArchiveTree, after former: ArchiveIndex?) {
    nextInode = former?.nextInode ?? ArchiveIndex.firstInode + 1
    self.tree = tree
    var matches: NodeMatches?
    if let former { matches = NodeMatches(of: self.tree, in: former.tree) }
    for node in 0..<UInt32(self.tree.count) {
      if node == ArchiveTree.root {
        self.tree[node].inode = ArchiveIndex.firstInode
      } else if let former, let match = matches?[node], isSame(node, former.tree[match]) {
        self.tree[node].inode = former.tree[match].inode
      } else {
        self.tree[node].inode = nextInode
        nextInode += 1
      }
      if self.tree[node].isFolder { folders[self.tree[node].inode] = node }
    }
  }

  private func isSame(_ node: UInt32, _ former: ArchiveNode) -> Bool {
    tree[node].isFolder ? former.isFolder : former.hasSameContent(as: tree[node])
  }
}

/// Which nodes of another tree have the paths of a tree's nodes.
struct NodeMatches {
  private var matches: [UInt32]
  private static let none = UInt32.max

  init(of tree: ArchiveTree, in other: ArchiveTree) {
    matches = Array(repeating: Self.none, count: tree.count)
    matches[Int(ArchiveTree.root)] = ArchiveTree.root
    // Folders come before what is in them.
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

/// An index while its records are being read.
struct ArchiveIndexBuilder: ~Copyable {
  fileprivate let source: ArchiveSource
  fileprivate let directory: CentralDirectory
  private let folder: [[UInt8]]
  fileprivate var tree: ArchiveTree
  fileprivate var skipped = SkipReason.allCases.map { SkippedNames(reason: $0) }
  fileprivate var entries = 0
  /// Folders that were made because a path leads through them. A path of 64 KiB can have 32,000; more than
  /// these have only archives that are to fill the memory.
  private var impliedFolders = 0
  private static let mostImpliedFolders = 1 << 16
  private var clock = DOSTime()
  private var foundFolder: Bool
  private var foundFile = false
  /// The path, with its slash, up to the folder of the last record, and that folder; nil outside the layer.
  private var lastPrefix: [UInt8] = []
  private var lastFolder: UInt32?

  init(_ source: ArchiveSource, _ directory: CentralDirectory, folder: [[UInt8]]) {
    self.source = source
    self.directory = directory
    self.folder = folder
    foundFolder = folder.isEmpty
    // What an archive says of itself is not believed at once: room for more is made as records come.
    tree = ArchiveTree(capacity: Int(min(directory.declaredCount, 1 << 16)))
    lastFolder = folder.isEmpty ? ArchiveTree.root : nil
  }

  /// Takes a record in.
  mutating func add(_ record: ZipRecord) {
    entries += 1
    // The closure cannot capture what is being changed.
    let reason = EntryName.withBytes(of: record) { path in
      if let fault = EntryName.fault(of: path) { return fault as SkipReason? }
      return add(record, path)
    }
    if let reason { skip(record.name, reason) }
  }

  private mutating func skip(_ name: UnsafeRawBufferPointer, _ reason: SkipReason) {
    if let index = skipped.firstIndex(where: { $0.reason == reason }) { skipped[index].add(name) }
  }

  private mutating func add(_ record: ZipRecord, _ path: UnsafeRawBufferPointer) -> SkipReason? {
    var end = path.count
    while end > 0, path[end - 1] == EntryName.slash { end -= 1 }
    var start = end
    while start > 0, path[start - 1] != EntryName.slash { start -= 1 }
    let prefix = UnsafeRawBufferPointer(rebasing: path[..<start])
    if !lastPrefix.elementsEqual(prefix) {
      switch resolve(prefix) {
      case .collision: return .collision
      case .tooDeep: return .tooDeep
      case .outside(let depth): return addAbove(record, path, start, end, depth)
      case .folder(let folder):
        lastPrefix = Array(prefix)
        lastFolder = folder
      }
    }
    // Only before the layer's folder is met for the first time, at the archive's root.
    guard let folder = lastFolder else { return addAbove(record, path, start, end, 0) }
    // `a/.` is `a`.
    if EntryName.isEmptyOrDot(path, start, end) { return addFolder(record, at: folder) }
    return add(record, UnsafeRawBufferPointer(rebasing: path[start..<end]), in: folder)
  }

  private enum Resolution {
    case folder(UInt32)
    case collision
    case tooDeep
    /// Not in the layer; so many names of the layer's folder are on the way, if no others are.
    case outside(Int?)
  }

  /// Goes down a path of folders, and makes those that are missing.
  private mutating func resolve(_ path: UnsafeRawBufferPointer) -> Resolution {
    var (depth, node, start) = (0, ArchiveTree.root, 0)
    while start < path.count {
      let end = EntryName.end(of: path, from: start)
      let name = UnsafeRawBufferPointer(rebasing: path[start..<end])
      let isEmptyOrDot = EntryName.isEmptyOrDot(path, start, end)
      start = end + 1
      if isEmptyOrDot { continue }
      if depth < folder.count {
        guard folder[depth].elementsEqual(name) else { return .outside(nil) }
        depth += 1
        continue
      }
      if let found = tree.find(name, in: node) {
        guard tree[found].isFolder else { return .collision }
        node = found
      } else {
        guard impliedFolders < Self.mostImpliedFolders + 4 * entries else { return .tooDeep }
        impliedFolders += 1
        var made = ArchiveNode()
        made.mode = UInt16(FileKind.directory.rawValue | 0o755)
        guard let number = tree.add(name, in: node, made) else { return .collision }
        node = number
      }
    }
    if depth < folder.count { return .outside(depth) }
    foundFolder = true
    return .folder(node)
  }

  /// A record that is not in the layer's folder may be that folder.
  private mutating func addAbove(
    _ record: ZipRecord, _ path: UnsafeRawBufferPointer, _ start: Int, _ end: Int, _ depth: Int?
  ) -> SkipReason? {
    guard let depth, depth + 1 == folder.count, folder[depth].elementsEqual(path[start..<end]) else {
      return nil
    }
    if record.mode & 0o170000 != FileKind.directory.rawValue {
      foundFile = true
      return foundFolder ? .collision : nil
    }
    foundFolder = true
    return addFolder(record, at: ArchiveTree.root)
  }

  private mutating func addFolder(_ record: ZipRecord, at node: UInt32) -> SkipReason? {
    guard record.mode & 0o170000 == FileKind.directory.rawValue else { return .collision }
    let isRepeated = tree[node].flags.contains(.isExplicit)
    tree[node].mode = UInt16(record.mode)
    tree[node].modified = record.modified(&clock)
    tree[node].flags.insert(.isExplicit)
    return isRepeated ? .repeated : nil
  }

  private mutating func add(
    _ record: ZipRecord, _ name: UnsafeRawBufferPointer, in folder: UInt32
  ) -> SkipReason? {
    let present = tree.find(name, in: folder)
    let isFolder = record.mode & 0o170000 == FileKind.directory.rawValue
    if let present, tree[present].isFolder != isFolder { return .collision }
    if isFolder {
      guard let node = present ?? tree.add(name, in: folder, ArchiveNode()) else { return .collision }
      return addFolder(record, at: node)
    }
    let node = node(of: record)
    guard let present else { return tree.add(name, in: folder, node) == nil ? .tooLong : nil }
    // The last one counts: it was added to the archive last.
    let former = tree[present]
    tree[present] = node
    (tree[present].name, tree[present].nameLength) = (former.name, former.nameLength)
    (tree[present].parent, tree[present].next) = (former.parent, former.next)
    return .repeated
  }

  private mutating func node(of record: ZipRecord) -> ArchiveNode {
    var node = ArchiveNode()
    node.offset = record.offset
    node.compressedSize = record.compressedSize
    node.size = record.size
    node.modified = record.modified(&clock)
    node.crc = record.crc
    node.mode = UInt16(record.mode)
    node.method = record.method
    if record.isEncrypted { node.flags.insert(.isEncrypted) }
    if record.flags & 2 != 0 { node.flags.insert(.hasEndMarker) }
    return node
  }

  /// Hands the tree out, so that it has one owner.
  fileprivate mutating func takeTree() -> ArchiveTree {
    let taken = tree
    tree = ArchiveTree(capacity: 0)
    return taken
  }

  /// Settles what only the whole archive tells.
  mutating func finish() throws(ArchiveError) {
    if !foundFolder {
      let path = Array(folder.joined(separator: [EntryName.slash]))
      throw foundFile ? .fileForFolder(path) : .noFolder(path)
    }
    flagOverlaps()
    setFolderTimes()
  }

  /// Entries do not share bytes, unless somebody wants to make much out of little.
  private mutating func flagOverlaps() {
    // A record's header has 30 bytes and the name, which is not known here for names that were converted.
    var files: [(offset: UInt64, node: UInt32)] = []
    files.reserveCapacity(tree.count)
    for node in 0..<UInt32(tree.count) where !tree[node].isFolder { files.append((tree[node].offset, node)) }
    var isInOrder = true
    for index in files.indices.dropFirst() where files[index - 1].offset >= files[index].offset {
      isInOrder = false
      break
    }
    if !isInOrder { files.sort { $0 < $1 } }
    for index in files.indices.dropLast() {
      let (offset, node) = files[index]
      let (end, overflows) = (offset &+ 30).addingReportingOverflow(tree[node].compressedSize)
      let following = files[index + 1]
      if overflows || end > following.offset {
        tree[node].flags.insert(.isOverlapping)
        if offset == following.offset { tree[following.node].flags.insert(.isOverlapping) }
      }
    }
  }

  /// Folders without an entry of their own are as new as the newest thing in them.
  private mutating func setFolderTimes() {
    for index in stride(from: tree.count - 1, to: 0, by: -1) {
      let node = tree[UInt32(index)]
      if tree[node.parent].flags.contains(.isExplicit) { continue }
      tree[node.parent].modified = max(tree[node.parent].modified, node.modified)
    }
    let root = ArchiveTree.root
    if tree[root].offset == 0, !tree[root].flags.contains(.isExplicit) {
      let modified = source.attributes.modified
      tree[root].modified = modified.seconds * 1_000_000_000 + Int64(modified.nanoseconds)
    }
  }
}
