import Posix

/// What an index needs to know of an archive's entry, beside its name.
protocol ArchiveRecord {
  var size: UInt64 { get }
  /// `st_mode`.
  var mode: UInt32 { get }
  /// The number of its `ArchivedAttributes` in the builder's table; 0 for none.
  var attributes: UInt32 { get }
  /// Nanoseconds since the epoch.
  func modified(_ clock: inout DOSTime) -> Int64
  /// The node of a file, without its name and place in the tree.
  func node(_ clock: inout DOSTime) -> ArchiveNode
}

/// Builds the tree of an index, record by record.
struct ArchiveIndexBuilder: ~Copyable {
  let source: ArchiveSource
  let directory: CentralDirectory
  private let folder: [[UInt8]]
  private var tree: ArchiveTree
  private(set) var skipped = SkipReason.allCases.map { SkippedNames(reason: $0) }
  private(set) var entries = 0
  /// Entries whose backslashes were taken for slashes.
  private(set) var backslashed = 0
  /// Folders without an entry of their own. One path of 64 KiB can imply 32,000; only hostile archives have
  /// more than the limit.
  private var impliedFolders = 0
  private static let mostImpliedFolders = 1 << 16
  private var clock = DOSTime()
  private var foundFolder: Bool
  private var foundFile = false
  /// The path of the last record's folder, with its slash, and that folder; nil outside the layer.
  private var lastPrefix: [UInt8] = []
  private var lastFolder: UInt32?

  private let converter: NameConverter?
  private var isContainer = false
  private let owners: ArchiveOwners
  /// The owners of the entries.
  var attributeTable = ArchivedAttributeTable()

  /// For the records of a container, of which there are about `count`.
  init(
    _ source: ArchiveSource, count: Int, folder: [[UInt8]], encoding: NameEncoding?,
    _ owners: ArchiveOwners = .mounter
  ) {
    let none = CentralDirectory(
      start: source.size, size: 0, prefixLength: 0, declaredCount: UInt64(clamping: count))
    self.init(source, none, folder: folder, encoding: encoding, owners)
    isContainer = true
  }

  init(
    _ source: ArchiveSource, _ directory: CentralDirectory, folder: [[UInt8]], encoding: NameEncoding?,
    _ owners: ArchiveOwners = .mounter
  ) {
    self.owners = owners
    converter = encoding.flatMap { NameConverter($0) }
    self.source = source
    self.directory = directory
    self.folder = folder
    foundFolder = folder.isEmpty
    // The declared count is not trusted: there cannot be more records than bytes for them, and the tree can grow.
    let count = min(directory.declaredCount, directory.size / 46, 1 << 22)
    // What grows leaves memory behind that malloc(3) keeps.
    tree = ArchiveTree(capacity: Int(count), nameBytes: Int(min(directory.size - 46 * count, 1 << 27)))
    lastFolder = folder.isEmpty ? ArchiveTree.root : nil
  }

  mutating func add(_ record: ZipRecord) {
    entries += 1
    var record = record
    if owners.areServed { record.takeOwner(owners, &attributeTable) }
    // The closure cannot capture a mutable `self`.
    let given = record
    let reason = EntryName.withBytes(of: given, converter) { path in
      guard given.isMadeOnWindows, let converted = EntryName.withoutBackslashes(path) else {
        return addChecked(given, path)
      }
      backslashed += 1
      var record = given
      record.isNamedAsFolder = converted.last == EntryName.slash
      return converted.withUnsafeBytes { addChecked(record, $0) }
    }
    if let reason { skip(record.name, reason) }
  }

  /// Adds a record whose name has no flags.
  mutating func add(_ record: some ArchiveRecord, named name: UnsafeRawBufferPointer) {
    entries += 1
    if let reason = addChecked(record, EntryName.converted(name, converter)) { skip(name, reason) }
  }

  /// Counts an entry that cannot be shown.
  mutating func reject(_ name: UnsafeRawBufferPointer, _ reason: SkipReason) {
    entries += 1
    skip(name, reason)
  }

  private mutating func skip(_ name: UnsafeRawBufferPointer, _ reason: SkipReason) {
    if let index = skipped.firstIndex(where: { $0.reason == reason }) { skipped[index].add(name) }
  }

  private mutating func addChecked(_ record: some ArchiveRecord, _ path: UnsafeRawBufferPointer)
    -> SkipReason?
  {
    if let fault = EntryName.fault(of: path) { return fault }
    // The kernel refuses such a size, and `off_t` cannot hold it.
    if record.size > UInt64(Int64.max) { return .tooLarge }
    return add(record, path)
  }

  private mutating func add(_ record: some ArchiveRecord, _ path: UnsafeRawBufferPointer) -> SkipReason? {
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
    // Until the first entry in the layer's folder, at the archive's root.
    guard let folder = lastFolder else { return addAbove(record, path, start, end, 0) }
    // `a/.` is `a`.
    if EntryName.isEmptyOrDot(path, start, end) { return addFolder(record, at: folder) }
    return add(record, UnsafeRawBufferPointer(rebasing: path[start..<end]), in: folder)
  }

  private enum Resolution {
    case folder(UInt32)
    case collision
    case tooDeep
    /// Not in the layer; the number of leading components of the layer's folder if the path has no others.
    case outside(Int?)
  }

  /// Resolves a path of folders and creates those that are missing.
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

  /// A record outside the layer's folder may be the entry of that folder itself.
  private mutating func addAbove(
    _ record: some ArchiveRecord, _ path: UnsafeRawBufferPointer, _ start: Int, _ end: Int, _ depth: Int?
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

  private mutating func addFolder(_ record: some ArchiveRecord, at node: UInt32) -> SkipReason? {
    guard record.mode & 0o170000 == FileKind.directory.rawValue else { return .collision }
    let isRepeated = tree[node].flags.contains(.isExplicit)
    tree.setAttributes(record.attributes, of: node)
    tree[node].mode = UInt16(record.mode)
    tree[node].modified = record.modified(&clock)
    tree[node].flags.insert(.isExplicit)
    return isRepeated ? .repeated : nil
  }

  private mutating func add(
    _ record: some ArchiveRecord, _ name: UnsafeRawBufferPointer, in folder: UInt32
  ) -> SkipReason? {
    let present = tree.find(name, in: folder)
    let isFolder = record.mode & 0o170000 == FileKind.directory.rawValue
    if let present, tree[present].isFolder != isFolder { return .collision }
    if isFolder {
      guard let node = present ?? tree.add(name, in: folder, ArchiveNode()) else { return .collision }
      return addFolder(record, at: node)
    }
    let node = record.node(&clock)
    guard let present else {
      guard let number = tree.add(name, in: folder, node) else { return .tooLong }
      tree.setAttributes(record.attributes, of: number)
      return nil
    }
    tree.setAttributes(record.attributes, of: present)
    // The last entry of a name wins, since it was added to the archive last.
    let former = tree[present]
    tree[present] = node
    (tree[present].name, tree[present].nameLength) = (former.name, former.nameLength)
    (tree[present].parent, tree[present].next) = (former.parent, former.next)
    return .repeated
  }

  /// Returns the tree and gives up the builder's reference, so that changes do not copy it.
  mutating func takeTree() -> ArchiveTree {
    let taken = tree
    tree = ArchiveTree(capacity: 0)
    return taken
  }

  mutating func finish() throws(ArchiveError) {
    if !foundFolder {
      let path = Array(folder.joined(separator: [EntryName.slash]))
      throw foundFile ? .fileForFolder(path) : .noFolder(path)
    }
    // Programs that read files as they are listed then read a container in its order.
    if isContainer {
      tree.orderChildren()
      tree.countNames()
    } else {
      flagOverlaps()
    }
    setFolderTimes()
  }

  /// Flags entries that share bytes: a zip bomb.
  private mutating func flagOverlaps() {
    // A local header has 30 bytes and the name; the length of a converted name is unknown here.
    var files: [UInt32] = []
    files.reserveCapacity(tree.count)
    for node in 0..<UInt32(tree.count) where !tree[node].isFolder { files.append(node) }
    if !zip(files, files.dropFirst()).allSatisfy({ tree[$0].offset < tree[$1].offset }) {
      files.sort { (tree[$0].offset, $0) < (tree[$1].offset, $1) }
    }
    for (node, following) in zip(files, files.dropFirst()) {
      let (offset, next) = (tree[node].offset, tree[following].offset)
      let (end, overflows) = (offset &+ 30).addingReportingOverflow(tree[node].compressedSize)
      if overflows || end > next {
        tree[node].flags.insert(.isOverlapping)
        if offset == next { tree[following].flags.insert(.isOverlapping) }
      }
    }
  }

  /// The mtime of a folder without an entry of its own is the latest one in it.
  private mutating func setFolderTimes() {
    for index in stride(from: tree.count - 1, to: 0, by: -1) {
      let node = tree[UInt32(index)]
      if tree[node.parent].flags.contains(.isExplicit) { continue }
      tree[node.parent].modified = max(tree[node.parent].modified, node.modified)
    }
    let root = ArchiveTree.root
    if tree[root].offset == 0, !tree[root].flags.contains(.isExplicit) {
      tree[root].modified = source.attributes.modified.clampedNanoseconds
    }
  }
}
