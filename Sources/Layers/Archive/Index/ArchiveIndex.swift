import CLibrary
import Posix

/// A snapshot of an archive's table of contents.
final class ArchiveIndex: Sendable {
  let source: ArchiveSource
  /// nil for a zip archive.
  let container: Container?
  let tree: ArchiveTree
  /// The owners of the entries, to which `tree` refers; empty if all belong to the mounting user.
  let attributeTable: [ArchivedAttributes]
  let skipped: [SkippedNames]
  /// Entries in the central directory.
  let entries: Int
  /// Entries whose backslashes were taken for slashes.
  let backslashed: Int
  /// The bytes before the archive, and the offset of the central directory.
  let prefixLength: UInt64
  let dataEnd: UInt64
  /// Folders by inode number.
  let folders: [UInt64: UInt32]
  /// The first inode number that the layer has never used.
  let nextInode: UInt64

  /// The root's inode number. A mount uses smaller ones for other purposes.
  static let firstInode: UInt64 = 16

  private init(
    _ builder: consuming ArchiveIndexBuilder, _ listing: ContainerListing?, numbers: consuming InodeAssignment
  ) {
    source = builder.source
    tree = numbers.tree
    container = listing.map { [tree, source] in Container($0, of: source, tree) }
    attributeTable = builder.attributeTable.all
    skipped = builder.skipped.filter { $0.count > 0 }
    entries = builder.entries
    backslashed = builder.backslashed
    prefixLength = builder.directory.prefixLength
    dataEnd = builder.directory.start
    folders = numbers.folders
    nextInode = numbers.nextInode
  }

  /// The same state, in which the files with these inode numbers are other files.
  init(_ other: ArchiveIndex, replacing distrusted: Set<UInt64>) {
    source = other.source
    container = other.container
    attributeTable = other.attributeTable
    skipped = other.skipped
    entries = other.entries
    backslashed = other.backslashed
    (prefixLength, dataEnd) = (other.prefixLength, other.dataEnd)
    folders = other.folders
    var (tree, next) = (other.tree, other.nextInode)
    // All names of a file get the same number.
    var numbers: [UInt64: UInt64] = [:]
    for node in 0..<UInt32(tree.count) where distrusted.contains(tree[node].inode) {
      let number = numbers[tree[node].inode] ?? next
      numbers[tree[node].inode] = number
      tree[node].inode = number
      next = max(next, number + 1)
    }
    (self.tree, nextInode) = (tree, next)
  }

  /// - Parameters:
  ///   - encoding: that of names which are not flagged as UTF-8; nil to guess it.
  ///   - folder: the path from the archive's root to the folder that is the layer.
  ///   - former: what is the same in both keeps its inode number.
  ///   - nextInode: the first number for what is not the same; nil for the one that follows those of `former`.
  ///   - distrusted: the inode numbers of files that become other files.
  ///   - owners: whose the entries are.
  static func read(
    _ source: ArchiveSource, folder: [[UInt8]], encoding: NameEncoding?, former: ArchiveIndex? = nil,
    distrusted: Set<UInt64> = [], after nextInode: UInt64? = nil, owners: ArchiveOwners = .mounter,
    progress: (UInt64, UInt64) -> Void = { _, _ in }
  ) throws(ArchiveError) -> ArchiveIndex {
    let source = try source.archiveBehindProgram() ?? source
    let owners = owners.limited(to: source)
    let listing = try ContainerListing(source, owners, progress: progress)
    var builder = try build(source, listing, folder, encoding, owners, progress)
    let numbers = InodeAssignment(
      builder.takeTree(), after: former, except: distrusted, from: nextInode)
    return ArchiveIndex(builder, listing, numbers: numbers)
  }

  /// - Parameter listing: nil for a zip archive.
  private static func build(
    _ source: ArchiveSource, _ listing: ContainerListing?, _ folder: [[UInt8]], _ encoding: NameEncoding?,
    _ owners: ArchiveOwners, _ progress: (UInt64, UInt64) -> Void
  ) throws(ArchiveError) -> ArchiveIndexBuilder {
    var builder: ArchiveIndexBuilder
    if let listing {
      builder = ArchiveIndexBuilder(
        source, count: listing.records.count, folder: folder, encoding: encoding, owners)
      listing.addEntries(to: &builder)
    } else {
      let directory = try directory(of: source)
      builder = ArchiveIndexBuilder(source, directory, folder: folder, encoding: encoding, owners)
      try directory.forEachRecord(in: source, progress: progress) { builder.add($0) }
    }
    guard source.isUnchanged else { throw .changing }
    try builder.finish()
    return builder
  }

  private static func directory(of source: ArchiveSource) throws(ArchiveError) -> CentralDirectory {
    do throws(ArchiveError) { return try CentralDirectory.find(in: source) } catch .noArchive {
      throw ForeignFormat.fault(of: source) ?? .noArchive
    }
  }

  /// Reads the index of a state that a predecessor had read.
  /// - Parameter numbers: as `InodeAssignment`.
  /// - Throws: `changing` if the file was overwritten since.
  static func restore(
    _ source: ArchiveSource, folder: [[UInt8]], encoding: NameEncoding?, numbers: [UInt64],
    owners: ArchiveOwners = .mounter
  ) throws(ArchiveError) -> ArchiveIndex {
    let source = try source.archiveBehindProgram() ?? source
    let owners = owners.limited(to: source)
    let listing = try ContainerListing(source, owners)
    var builder = try build(source, listing, folder, encoding, owners, { _, _ in })
    guard let assigned = InodeAssignment(builder.takeTree(), numbers: numbers) else { throw .changing }
    return ArchiveIndex(builder, listing, numbers: assigned)
  }

  func header(of node: ArchiveNode) -> LocalHeader {
    LocalHeader(
      source: source, offset: node.offset.addingReportingOverflow(prefixLength).partialValue, end: dataEnd,
      container: container)
  }

  func find(_ name: CName, in folder: UInt32) -> UInt32? {
    tree.find(UnsafeRawBufferPointer(start: name, count: strlen(name)), in: folder)
  }

  /// The name of the folder that is all there is at the root; nil if there is anything else.
  var wrapper: [UInt8]? {
    let only = UInt32(truncatingIfNeeded: tree[ArchiveTree.root].offset)
    guard only != 0, tree[only].next == 0, tree[only].isFolder else { return nil }
    return tree.name(of: only)
  }

  /// The numbers of files, including symbolic links, and of folders below the root.
  var counts: (files: Int, folders: Int) { (tree.count - folders.count, folders.count - 1) }
}
