import Fuse
import Layers
import Posix

/// A node that the kernel knows, or an ancestor of one.
///
/// Invariants, which `NodeTable` checks in debug builds whenever its lock is released:
/// - a node other than the root is kept while `lookups` or `children` is above 0;
/// - a directory's `children` counts the nodes with this `parent`; they form the list that begins at its
///   `firstChild`;
/// - a directory is identified by its parent and name, any other node by its layer and identity, or by these and its
///   name (`separatesHardLinks`); its parent and name are those of its last lookup;
/// - `file` is set only if `isPinned` is true; nodes with a `file` or `merged` are in the `DescriptorLRU`.
///
/// There is one for each known file, so its size matters: the fields are ordered to leave no padding, and what
/// only directories have is in `DirectoryState`.
struct Node {
  private enum Content {
    case none
    case file(LayerFile)
    case directory(DirectoryState)
  }

  var identity = FileIdentity(device: 0, inode: 0, born: TimeSpec(seconds: 0, nanoseconds: 0))
  var parent: UInt32 = 0
  var inodeNumber: UInt64 = 0
  /// The lookup count: lookups that the kernel has not yet forgotten.
  var lookups: UInt64 = 0
  /// `reportedSize`, with `UInt64.max` for nil.
  private var lastReportedSize = UInt64.max
  private var content = Content.none
  /// How often the slot was used before; part of the node's number.
  var generation: UInt32 = 0
  /// The index of the name in the table's `NameArena`.
  var name: UInt32 = 0
  /// The parent's list of children; 0 ends it. In a free slot, `nextSibling` is the next free slot.
  var nextSibling: UInt32 = 0
  var previousSibling: UInt32 = 0
  /// Files only.
  var layer: UInt16 = 0
  /// nil in a free slot.
  var kind: FileKind?
  private var flags: Flags = []
  /// What `ReportedRights` has for the rights that replies have given to the kernel; files only.
  var rights = ReportedRights.none

  /// A free slot.
  init(generation: UInt32 = 0, nextFree: UInt32 = 0) {
    self.generation = generation
    nextSibling = nextFree
  }

  init(directory inodeNumber: UInt64) {
    kind = .directory
    self.inodeNumber = inodeNumber
    content = .directory(DirectoryState())
  }

  init(file identity: FileIdentity, kind: FileKind, layer: Int, inodeNumber: UInt64) {
    self.identity = identity
    self.kind = kind
    self.layer = UInt16(layer)
    self.inodeNumber = inodeNumber
  }

  // MARK: - Records

  /// What outlives the process.
  var record: NodeRecord {
    var record = NodeRecord()
    (record.generation, record.parent, record.name) = (generation, parent, name)
    (record.layer, record.kind, record.flags) = (layer, kind, flags.rawValue)
    record.identity = identity
    record.file = file?.number.map { $0 + 1 } ?? 0
    (record.inodeNumber, record.lookups, record.reportedSize) = (inodeNumber, lookups, lastReportedSize)
    return record
  }

  /// The node without what it holds.
  init(_ record: NodeRecord) {
    (generation, parent, name) = (record.generation, record.parent, record.name)
    (layer, kind, flags) = (record.layer, record.kind, Flags(rawValue: record.flags))
    identity = record.identity
    (inodeNumber, lookups, lastReportedSize) = (record.inodeNumber, record.lookups, record.reportedSize)
    // What a predecessor has reported is not known.
    rights = ReportedRights.mixed
    if kind == .directory { content = .directory(DirectoryState()) }
  }

  /// Whether a recorded node is in the identity index.
  static func isIndexed(_ record: NodeRecord) -> Bool { Flags(rawValue: record.flags).contains(.isIndexed) }

  /// The hash by which the identity index has a recorded node.
  static func identityHash(of record: NodeRecord) -> UInt32 {
    NodeHash.of(
      record.identity, layer: record.layer,
      isOneOfMany: Flags(rawValue: record.flags).contains(.hadHardLinks))
  }

  /// The hash by which the identity index has it.
  var identityHash: UInt32 { NodeHash.of(identity, layer: layer, isOneOfMany: hadHardLinks) }

  // MARK: - Flags of files

  private struct Flags: OptionSet {
    let rawValue: UInt8
    static let isIndexed = Flags(rawValue: 1)
    static let isPinned = Flags(rawValue: 2)
    static let isDetached = Flags(rawValue: 4)
    static let hadSeveralSizes = Flags(rawValue: 8)
    static let wasRebound = Flags(rawValue: 16)
    static let isUnlinked = Flags(rawValue: 32)
    static let awaitsSize = Flags(rawValue: 64)
    static let hadHardLinks = Flags(rawValue: 128)
  }

  private subscript(flag: Flags) -> Bool {
    get { flags.contains(flag) }
    set { if newValue { flags.formUnion(flag) } else { flags.subtract(flag) } }
  }

  /// Whether the node is in the identity index. One that was rebound to a file that has a node already is not.
  var isIndexed: Bool {
    get { self[.isIndexed] }
    set { self[.isIndexed] = newValue }
  }

  /// Whether the content or link target was read; from then on the node stays with its file.
  var isPinned: Bool {
    get { self[.isPinned] }
    set { self[.isPinned] = newValue }
  }

  /// Whether the file was seen to lose its name to another file, or by removal.
  var isDetached: Bool {
    get { self[.isDetached] }
    set { self[.isDetached] = newValue }
  }

  /// Whether the file of a node that is not pinned was seen to lose its name, which is then none of its hard
  /// links. The node stays with the name.
  var isUnlinked: Bool {
    get { self[.isUnlinked] }
    set { self[.isUnlinked] = newValue }
  }

  /// Whether several sizes were reported to the kernel, which may then have cached an older one.
  var hadSeveralSizes: Bool {
    get { self[.hadSeveralSizes] }
    set { self[.hadSeveralSizes] = newValue }
  }

  /// Whether the node was pinned to a file while the kernel may have had another size of it.
  private var awaitsSize: Bool {
    get { self[.awaitsSize] }
    set { self[.awaitsSize] = newValue }
  }

  /// Whether the file was seen with several hard links where each has a node (`separatesHardLinks`). The node then never
  /// turns to another name: programs that have opened the file by this one would change that one.
  var hadHardLinks: Bool {
    get { self[.hadHardLinks] }
    set { self[.hadHardLinks] = newValue }
  }

  /// Whether the node refers to another file than at first.
  var wasRebound: Bool {
    get { self[.wasRebound] }
    set { self[.wasRebound] = newValue }
  }

  // MARK: - Content

  /// The size in bytes that the last reply gave to the kernel; files only.
  var reportedSize: UInt64? {
    get { lastReportedSize == .max ? nil : lastReportedSize }
    set { lastReportedSize = newValue ?? .max }
  }

  var file: LayerFile? {
    get { if case .file(let file) = content { file } else { nil } }
    set {
      if case .directory = content { return }
      content = newValue.map(Content.file) ?? .none
    }
  }

  /// nil for a non-directory.
  var directory: DirectoryState? { if case .directory(let state) = content { state } else { nil } }

  /// On a writable mount, whether nothing but the open file is left of a file of the upper layer.
  var isLastOfUpperFile: Bool { isDetached && layer == 0 && file != nil }

  var isUnread: Bool { kind == .regular && !isPinned && !isDetached }

  /// Whether the content may be stored in the page cache before the first READ.
  func isPrefetchable(upTo largest: UInt64) -> Bool {
    isUnread && lookups > 0 && lastReportedSize > 0 && lastReportedSize <= largest
  }

  var children: UInt32 { directory?.children ?? 0 }

  /// Whether the kernel can have no other size of it than this one, in bytes.
  func hasOnlySize(_ size: UInt64) -> Bool { reportedSize == size && !hadSeveralSizes }

  /// Whether the kernel may have cached an outdated size, to which it would truncate the content or pad it with
  /// zeros. A reply with the current size does not resolve that: the kernel drops a reply that was overtaken by
  /// an invalidation or another reply.
  var isSizeDoubtful: Bool { awaitsSize || (hadSeveralSizes && !isPinned) }

  /// Pins the node to its file. A doubt about the size remains until `confirmSize`.
  mutating func pin() {
    awaitsSize = isSizeDoubtful
    isPinned = true
  }

  /// The kernel has the size of the file to which the node is pinned.
  mutating func confirmSize() { awaitsSize = false }
}

/// The name by which a file can be reached in its layer.
struct FileLocation {
  let kind: FileKind
  let layer: Int
  let identity: FileIdentity
  let isPinned: Bool
  let parent: NodeID
  let name: [UInt8]
}
