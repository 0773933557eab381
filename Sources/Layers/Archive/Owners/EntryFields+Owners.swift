#if Archives
import CLibrary
import Posix

/// What the header of an entry says of rights.
extension EntryFields {
  /// The owner, and those extended attributes that are served.
  /// - Returns: nil if the owner or the group is no ID.
  func attributes(_ owners: ArchiveOwners) -> ArchivedAttributes? {
    guard var attributes = ArchivedAttributes(owner: owner, group: group) else { return nil }
    // Linux has those of users on files and directories only.
    let kind = FileKind(rawValue: mode & 0o170000)
    guard kind == .regular || kind == .directory else { return attributes }
    var bytes = 0
    forEachExtendedAttribute { name, value in
      guard Self.isServed(name, owners), value.count <= Self.longestValue else { return }
      bytes += name.count + 1
      guard bytes <= Self.longestList, !attributes.extended.contains(where: { name.elementsEqual($0.name) })
      else { return }
      attributes.extended.append(ArchivedAttribute(name: Array(name), value: Array(value)))
    }
    return attributes
  }

  /// `XATTR_SIZE_MAX`, and an ext4 block of names, which also bounds the search for repeated ones.
  private static let longestValue = 1 << 16
  private static let longestList = 1 << 12

  /// Those of other name spaces are the kernel's: labels, signatures, and marks of overlayfs.
  private static func isServed(_ name: UnsafeRawBufferPointer, _ owners: ArchiveOwners) -> Bool {
    guard name.count <= 255 else { return false }
    if name.elementsEqual("security.capability".utf8) { return owners.servesSetID }
    return name.count > 5 && name.starts(with: "user.".utf8)
  }

  /// `st_rdev` of a character or block device; nil if it has more bits than FUSE's protocol.
  var device: UInt32? { UInt32(exactly: rdev) }
}
#endif
