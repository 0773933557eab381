import Posix

/// The ACLs that a new entry gets from the default ACL of its parent, as acl(5) has it in "Object creation and default
/// ACLs".
///
/// The value of the xattr is a header of 4 bytes, and 8 bytes for each entry: tag (2 bytes), permissions (2), ID (4).
struct InheritedACL {
  private let access: [UInt8]
  private let `default`: [UInt8]

  /// - Parameter mode: the permission bits that the entry is created with.
  /// - Returns: nil if the parent has no default ACL.
  init?(of parent: borrowing Descriptor, mode: UInt32) throws(Errno) {
    guard let value = try parent.extendedAttribute(ACLAttribute.default.cName), value.count >= 4,
      value.count % 8 == 4
    else {
      return nil
    }
    `default` = value
    access = Self.masked(value, by: mode)
  }

  /// The ACL without the permissions of the owner, the group class and others that the mode lacks.
  private static func masked(_ value: [UInt8], by mode: UInt32) -> [UInt8] {
    let entries = Array(stride(from: 4, to: value.count, by: 8))
    let hasMask = entries.contains { value[$0] == Tag.mask }
    var masked = value
    for entry in entries {
      let shift: UInt32? =
        switch value[entry] {
        case Tag.user: 6
        case Tag.mask: 3
        case Tag.group: hasMask ? nil : 3
        case Tag.other: 0
        default: nil
        }
      if let shift { masked[entry + 2] &= UInt8(mode >> shift & 7) }
    }
    return masked
  }

  private enum Tag {
    static let user: UInt8 = 0x01
    static let group: UInt8 = 0x04
    static let mask: UInt8 = 0x10
    static let other: UInt8 = 0x20
  }

  /// Sets the ACLs of an entry.
  func set(on entry: borrowing Descriptor, isDirectory: Bool) throws(Errno) {
    try Self.set(ACLAttribute.access, access, on: entry)
    if isDirectory { try Self.set(ACLAttribute.default, `default`, on: entry) }
  }

  private static func set(_ name: StaticString, _ value: [UInt8], on entry: borrowing Descriptor)
    throws(Errno)
  {
    try value.withBytes { bytes throws(Errno) in
      try entry.setExtendedAttribute(name.cName, bytes, flags: 0)
    }
  }
}
