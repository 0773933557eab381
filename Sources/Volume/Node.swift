import Fuse
import Posix

/// A descriptor of a file's content, kept from its first READ; those who read hold it meanwhile.
final class OpenFile: Sendable {
  let descriptor: Descriptor
  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
}

/// What we know of a node that the kernel knows, or on which such a node depends.
///
/// Invariants, which `NodeTable.checkInvariants` holds in tests:
/// - a node is kept while `lookups` or `children` is above 0 (the root always);
/// - `children` counts the nodes whose `parent` this is, and they form the list that begins at its
///   `firstChild`;
/// - a directory is its parent and name; any other node is its layer and identity, and its parent and name
///   are the place where it was found last;
/// - `file` is set only where `hasBegun` is true; nodes with a `file` or `merged` are in the list of recent
///   descriptors.
struct Node {
  /// nil marks a free slot.
  var kind: FileKind?
  /// How often the slot was given away before; part of the node's number.
  var generation: UInt32 = 0
  /// The inode number that programs see.
  var inodeNumber: UInt64 = 0
  var parent: UInt32 = 0
  var name: [UInt8] = []
  /// Lookups that the kernel has not yet taken back.
  var lookups: UInt64 = 0
  var children: UInt32 = 0
  /// Neighbours among the parent's children; 0 ends.
  var nextSibling: UInt32 = 0
  var previousSibling: UInt32 = 0
  /// The next node with the same hash of its identity, or the next free slot; 0 ends.
  var next: UInt32 = 0
  /// The next node with the same hash of its parent and name; 0 ends.
  var nextNamed: UInt32 = 0
  /// Neighbours in the list of recent descriptors; 0 ends.
  var newer: UInt32 = 0
  var older: UInt32 = 0
  var isRecent = false

  // Of files only:
  /// Whether the node is found by its identity. One that followed its name to a file that another node
  /// stands for already is not.
  var isIndexed = false
  var layer: UInt16 = 0
  /// Whether content was read: from then on the node stays with its file.
  var hasBegun = false
  /// Whether its name was seen to go to another file, or to nobody.
  var isDetached = false
  /// Bytes, as the kernel was told last; nil before the first time.
  var toldSize: UInt64?
  /// Whether the kernel was told of several sizes, and so may keep one that is not the last.
  var wasToldSizes = false
  /// Whether it stands for another file than it did at first.
  var hasFollowed = false
  var identity = FileIdentity(device: 0, inode: 0, born: Moment(seconds: 0, nanoseconds: 0))
  var file: OpenFile?

  // Of directories only:
  var directory: DirectoryState?

  /// Whether the kernel may keep a size that the file does not have (any more), and would cut the content by
  /// that, or fill it up with zeros. An answer that tells of the present size does not settle it: the kernel
  /// throws one away that an invalidation, or another answer, overtook.
  var isSizeDoubtful: Bool { wasToldSizes && !hasBegun }
}

/// Where a file can be reached by name.
struct FilePlace {
  let kind: FileKind
  let layer: Int
  let identity: FileIdentity
  let hasBegun: Bool
  /// Its directory.
  let parent: NodeID
  /// The merged path of its directory.
  let directory: [[UInt8]]
  let name: [UInt8]
}
