import Fuse
import Glibc
import Layers
import Posix

/// An empty file `.ciopfs` that every directory has, but no listing, where case does not count. Wine looks for it on a FUSE
/// file system; where it is, Wine asks for a name in one spelling and reads no directory to try the others.
///
/// An entry of that name in a layer is found instead.
enum FoldingMarker {
  private static let name = Array(".ciopfs".utf8)
  /// As `ControlFile.node`: no node of the table has this number.
  static let node = NodeID(rawValue: 1 << 63 | 3)
  /// Below the numbers that files get.
  private static let inodeNumber: UInt64 = 4

  static func isName(_ bytes: CName) -> Bool {
    strlen(bytes) == name.count && NameFolding.areEqual(name, [UInt8](bytesOf: bytes))
  }

  static let attributes = NodeAttributes(
    FileStatus(
      regularFile: 0o444, owner: getuid(), group: getgid(), size: 0,
      modified: TimeSpec(seconds: 0, nanoseconds: 0)),
    inodeNumber: inodeNumber, timeout: CacheMode.forever)

  /// - Parameter timeout: seconds for which the kernel may cache that the layers lack the name.
  static func entry(timeout: Double) -> EntryReply {
    EntryReply(node: node, attributes: attributes, timeout: max(0, timeout))
  }
}
