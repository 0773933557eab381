import Fuse
import Layers
import Posix

/// Which directory of which layer takes part in a merged directory.
struct PartIdentity: Hashable, Sendable {
  let layer: Int
  let identity: FileIdentity

  init(_ part: LayerDirectory) {
    layer = part.layer
    identity = part.identity
  }
}

/// What we know of a directory's node beyond what every node has. All of it is guarded by the node table's
/// lock.
///
/// Invariants:
/// - `parts` is nil until the first request in the directory is answered: then nothing in it is cached, by
///   the kernel or by us. An empty list is a directory that no layer has any more.
/// - `merged`, if present, has exactly these parts.
/// - every part has a watch, set before it was read, or the directory is not `isCovered`.
final class DirectoryState: @unchecked Sendable {
  /// The nodes whose parent this is: how many, and the first of the list.
  var children: UInt32 = 0
  var firstChild: UInt32 = 0
  var parts: [PartIdentity]?
  var merged: MergedDirectory?
  /// Grows with every change to it that is told, before anything is taken back for it.
  var version = 0
  /// Whether every change to it is told by a watch: its own parts' and, for layers that lack it, those of the
  /// directories above. If not, what is said of it is valid for a short time only.
  var isCovered = false
  /// Why not, if one of its own parts is the cause.
  var uncachedReason: UncachedReason?
  /// How many of its small files were asked for that nobody had read, as far as that counts; the slot of the
  /// last of them, 0 once that was seen to; and whether somebody sees to it.
  var firstReads = 0
  var lastRead: UInt32 = 0
  var isPrefetching = false
  /// Whether the kernel may hold a listing of it.
  var wasListed = false
}

/// A part of a layer whose changes nobody tells.
struct UncachedReason: Sendable, Equatable {
  /// The layer's place in the stack.
  let layer: Int
  let reason: String
}
