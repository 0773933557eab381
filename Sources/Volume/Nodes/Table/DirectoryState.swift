import Layers
import Posix

struct PartIdentity: Hashable, Sendable {
  let layer: Int
  let identity: FileIdentity

  init(_ part: LayerDirectory) {
    layer = part.layer
    identity = part.identity
  }
}

/// What only directory nodes have. The node table's lock guards all of it.
///
/// Invariants:
/// - `parts` is nil until the first request in the directory is answered: nothing in it is cached yet, neither
///   by the kernel nor by us. It is empty if no layer has the directory any more.
/// - `merged`, if set, has exactly these parts.
/// - The table's `uncovered` has exactly the directories that are `isUncovered`.
/// - Each part has a watch that was added before the part was read, unless the directory is not `isCovered`.
final class DirectoryState: @unchecked Sendable {
  /// The number of nodes with this parent, and the ends of their list: the one that was looked up last, and the one that
  /// was looked up first.
  var children: UInt32 = 0
  var firstChild: UInt32 = 0
  var oldestChild: UInt32 = 0
  var parts: [PartIdentity]?
  /// A hash of the directories of the layers in which its parts were found; nil if it has none, or archives are among
  /// them.
  var place: Int?
  var merged: MergedDirectory?
  /// Whether `merged` may be outdated, since nothing reports its changes: the next request resolves it again.
  var needsRefresh = false
  /// Incremented with each reported change, before anything is invalidated for it.
  var version = 0
  /// How often a refresh has exchanged its parts, for the same or for others.
  var exchanges = 0
  /// Whether watches report every change: watches on its own parts and, for layers that lack it, on the
  /// directories above. If not, replies about it have short timeouts.
  var isCovered = false
  /// Whether it was covered before and may have lasting negative entries in the kernel, of names that came unnoticed.
  var mayHaveStaleNegatives = false
  /// Whether it was resolved before; what was cached of it since then may still be.
  var wasResolved = false
  /// Whether the kernel may have cached something of it from a predecessor that was not compared with the layers yet.
  var isInherited = false
  /// Whether it has to be polled, since something in it may be cached whose changes are not reported.
  var isUncovered: Bool { wasResolved && !isCovered }
  /// Why the directory is not covered, if one of its own parts is the cause.
  var uncachedReason: UncachedReason?
  /// Prefetching of small files: how many first READs there were, saturating; how many files near the last of them are
  /// still to be prefetched; its slot; and whether the worker is to prefetch them.
  var firstReads = 0
  var filesAhead = 0
  var lastRead: UInt32 = 0
  var isPrefetching = false
  /// The whiteouts that listings have met in its parts; nil for none. An event does not show that the character device
  /// it reports was one.
  var whiteouts: Set<Listing.Whiteout>?
  /// Whether the kernel may have cached a listing of it.
  var wasListed = false

  /// The last attributes that a reply has given to the kernel; nil where only one user may enter the mount.
  var reported: ReportedDirectory?
  /// Whether a reply has given an ACL to the kernel.
  var hasACL = false
  /// Whether the topmost part has become another directory, with other rights: the kernel may have let programs in by the
  /// former ones.
  var wasReplaced = false

  /// The only directory in a layer; nil if that is to be found, which may take every layer.
  func openPart(of layer: Int) -> LayerDirectory? { needsRefresh ? nil : merged?.solePart(of: layer) }
}

/// Why a part of a layer must not be cached without a timeout: its changes are not reported.
struct UncachedReason: Sendable, Equatable {
  let layer: Int
  let reason: String
}
