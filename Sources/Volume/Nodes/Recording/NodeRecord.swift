import Layers
import Posix

/// What a node is, without what can be found out again: plain memory that a successor reads.
struct NodeRecord: BitwiseCopyable {
  var generation: UInt32 = 0
  var parent: UInt32 = 0
  /// The index in the table's `NameArena`.
  var name: UInt32 = 0
  /// The index of a layer; in shared memory its ID, which it keeps when the stack changes.
  var layer: UInt16 = 0
  /// The file type bits of a mode, shifted by 12; 0 in a free slot.
  var type: UInt8 = 0
  var flags: UInt8 = 0
  var identity = FileIdentity(device: 0, inode: 0, born: TimeSpec(seconds: 0, nanoseconds: 0))
  /// The descriptor of the file to which the node is pinned, plus 1; 0 for none.
  var file: CInt = 0
  var inodeNumber: UInt64 = 0
  var lookups: UInt64 = 0
  var reportedSize: UInt64 = 0

  /// nil in a free slot.
  var kind: FileKind? {
    get { FileKind(rawValue: UInt32(type) << 12) }
    set { type = UInt8((newValue?.rawValue ?? 0) >> 12) }
  }
}
