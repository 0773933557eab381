import Fuse
import Layers
import Posix

/// A file's content, kept open from its first READ.
typealias OpenFile = LayerFile

/// What we know of a node that the kernel knows, or on which such a node depends.
///
/// Invariants, which `NodeTable.checkInvariants` holds in tests:
/// - a node is kept while `lookups` or `children` is above 0 (the root always);
/// - a directory's `children` counts the nodes whose `parent` this is, and they form the list that begins at
///   its `firstChild`;
/// - a directory is its parent and name; any other node is its layer and identity, and its parent and name
///   are the place where it was found last;
/// - `file` is set only where `isPinned` is true; nodes with a `file` or `merged` are in the list of recent
///   descriptors.
///
/// There is one for every file that is known, so its size counts: the fields are in an order that leaves no
/// gaps, and what only a directory has is in its `DirectoryState`.
struct Node {
  /// What only nodes of some kinds have.
  private enum Held {
    case nothing
    case file(OpenFile)
    case directory(DirectoryState)
  }

  /// Of files: the file's identity.
  var identity = FileIdentity(device: 0, inode: 0, born: TimeSpec(seconds: 0, nanoseconds: 0))
  var parent: UInt32 = 0
  /// The inode number that programs see.
  var inodeNumber: UInt64 = 0
  /// Lookups that the kernel has not yet taken back.
  var lookups: UInt64 = 0
  /// See `reportedSize`; the largest number for nil.
  private var told = UInt64.max
  private var held = Held.nothing
  /// How often the slot was given away before; part of the node's number.
  var generation: UInt32 = 0
  /// Where the table's `NameArena` has the name.
  var name: UInt32 = 0
  /// Neighbours among the parent's children; 0 ends. In a free slot, `nextSibling` is the next free one.
  var nextSibling: UInt32 = 0
  var previousSibling: UInt32 = 0
  /// Of files.
  var layer: UInt16 = 0
  /// nil marks a free slot.
  var kind: FileKind?
  private var flags: Flags = []

  /// A free slot.
  init(generation: UInt32 = 0, nextFree: UInt32 = 0) {
    self.generation = generation
    nextSibling = nextFree
  }

  init(directory inodeNumber: UInt64) {
    kind = .directory
    self.inodeNumber = inodeNumber
    held = .directory(DirectoryState())
  }

  init(file identity: FileIdentity, kind: FileKind, layer: Int, inodeNumber: UInt64) {
    self.identity = identity
    self.kind = kind
    self.layer = UInt16(layer)
    self.inodeNumber = inodeNumber
  }

  // MARK: - What is kept in less room than it would take

  private struct Flags: OptionSet {
    let rawValue: UInt8
    static let isIndexed = Flags(rawValue: 1)
    static let isPinned = Flags(rawValue: 2)
    static let isDetached = Flags(rawValue: 4)
    static let hadSeveralSizes = Flags(rawValue: 8)
    static let wasRebound = Flags(rawValue: 16)
    static let isUnlinked = Flags(rawValue: 32)
  }

  private subscript(flag: Flags) -> Bool {
    get { flags.contains(flag) }
    set { if newValue { flags.formUnion(flag) } else { flags.subtract(flag) } }
  }

  /// Of files: whether the node is found by its identity. One that followed its name to a file that another
  /// node stands for already is not.
  var isIndexed: Bool {
    get { self[.isIndexed] }
    set { self[.isIndexed] = newValue }
  }

  /// Of files: whether content was read: from then on the node stays with its file.
  var isPinned: Bool {
    get { self[.isPinned] }
    set { self[.isPinned] = newValue }
  }

  /// Of files: whether its name was seen to go to another file, or to nobody.
  var isDetached: Bool {
    get { self[.isDetached] }
    set { self[.isDetached] = newValue }
  }

  /// Of files that are only a name: whether the file was seen to leave it, so that it is not one of its names any
  /// more.
  var isUnlinked: Bool {
    get { self[.isUnlinked] }
    set { self[.isUnlinked] = newValue }
  }

  /// Of files: whether the kernel was told of several sizes, and so may keep one that is not the last.
  var hadSeveralSizes: Bool {
    get { self[.hadSeveralSizes] }
    set { self[.hadSeveralSizes] = newValue }
  }

  /// Of files: whether it stands for another file than it did at first.
  var wasRebound: Bool {
    get { self[.wasRebound] }
    set { self[.wasRebound] = newValue }
  }

  /// Of files: bytes, as the kernel was told last; nil before the first time.
  var reportedSize: UInt64? {
    get { told == .max ? nil : told }
    set { told = newValue ?? .max }
  }

  /// Of files: its content.
  var file: OpenFile? {
    get { if case .file(let file) = held { file } else { nil } }
    set {
      if case .directory = held { return }
      held = newValue.map(Held.file) ?? .nothing
    }
  }

  /// Of directories, always.
  var directory: DirectoryState? { if case .directory(let state) = held { state } else { nil } }

  /// Of files: whether nobody has read from it, and it still has its name.
  var isUnread: Bool { kind == .regular && !isPinned && !isDetached }

  /// Of files: whether its content may be put into the kernel's cache before anybody asks.
  func isPrefetchable(upTo largest: UInt64) -> Bool {
    isUnread && lookups > 0 && told > 0 && told <= largest
  }

  var children: UInt32 { directory?.children ?? 0 }

  /// Whether the kernel may keep a size that the file does not have (any more), and would cut the content by
  /// that, or fill it up with zeros. An answer that tells of the present size does not settle it: the kernel
  /// throws one away that an invalidation, or another answer, overtook.
  var isSizeDoubtful: Bool { hadSeveralSizes && !isPinned }
}

/// Where a file can be reached by name.
struct FileLocation {
  let kind: FileKind
  let layer: Int
  let identity: FileIdentity
  let isPinned: Bool
  /// Its directory.
  let parent: NodeID
  let name: [UInt8]
}
