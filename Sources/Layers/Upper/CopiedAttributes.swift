import CLibrary
import Posix

/// What has extended attributes that can be read.
protocol ExtendedAttributeSource {
  func extendedAttributeNames() throws(Errno) -> [UInt8]
  func extendedAttribute(_ name: CName, into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int
}
extension LayerFile: ExtendedAttributeSource {}
extension LayerDirectory: ExtendedAttributeSource {}

/// The attributes that a copy gets: owner, mode, times, and extended attributes, which include ACLs and capabilities.
struct CopiedAttributes {
  let status: FileStatus
  private var extended: [(name: [UInt8], value: [UInt8])] = []

  /// Reads the extended attributes of what is copied, except for those of overlayfs and of bundlefs.
  init(_ status: FileStatus, _ source: some ExtendedAttributeSource) throws(Errno) {
    self.status = status
    for name in Self.copied(try Self.names(of: source)) {
      do throws(Errno) {
        let value = try withCName(name) { name throws(Errno) in
          try readExtendedAttribute { buffer throws(Errno) in try source.extendedAttribute(name, into: buffer)
          }
        }
        extended.append((name, value))
      } catch {
        // It was removed meanwhile, or this process may not read it.
        if error != .noData && error != .notPermitted && error != .notSupported { throw error }
      }
    }
  }

  private static func names(of source: some ExtendedAttributeSource) throws(Errno) -> [[UInt8]] {
    do throws(Errno) {
      return try source.extendedAttributeNames().split(separator: 0).map { Array($0) }
    } catch {
      if error == .notSupported { return [] }
      throw error
    }
  }

  /// A mount lists a type that it has found out itself behind its own attributes, and one that the file has before them.
  private static func copied(_ names: [[UInt8]]) -> [[UInt8]] {
    let own = names.firstIndex { $0.starts(with: "user.bundlefs.".utf8) } ?? names.endIndex
    return names.indices.filter { index in
      !isPrivate(names[index]) && !(index > own && names[index].elementsEqual("user.mime_type".utf8))
    }.map { names[$0] }
  }

  private static func isPrivate(_ name: [UInt8]) -> Bool {
    (ReservedAttribute.isMarker(name) || ReservedAttribute.isOwn(name)) && !ReservedAttribute.isTimeMark(name)
  }

  /// Sets the attributes of a copy. The order is the only one in which none undoes another: chown(2) clears capabilities,
  /// and a process without privileges may no longer set extended attributes once the mode is read-only.
  func set(on copy: borrowing Descriptor) throws(Errno) {
    let isOwned = try setOwner(of: copy)
    try setExtendedAttributes(of: copy)
    if status.kind != .symbolicLink {
      // A set-user-ID program must not get another user.
      let forbidden = isOwned ? 0 : UInt32(S_ISUID | S_ISGID)
      try copy.changeMode(status.mode & 0o7777 & ~forbidden)
    }
    try copy.setTimes(accessed: .at(status.accessed), modified: .at(status.modified))
  }

  /// - Returns: false if this process may not give files away, or the owner is unknown in its user namespace.
  private func setOwner(of copy: borrowing Descriptor) throws(Errno) -> Bool {
    do throws(Errno) {
      try copy.changeOwner(status.owner, group: status.group)
      return true
    } catch {
      if error == .notPermitted || error == .invalidArgument { return false }
      throw error
    }
  }

  private func setExtendedAttributes(of copy: borrowing Descriptor) throws(Errno) {
    if status.kind != .symbolicLink { try removeInheritedACLs(of: copy) }
    for (name, value) in extended {
      do throws(Errno) {
        try withCName(name) { name throws(Errno) in
          try value.withBytes { value throws(Errno) in
            try copy.setExtendedAttribute(name, value, flags: 0)
          }
        }
      } catch {
        if error != .notSupported && error != .notPermitted { throw error }
      }
    }
  }

  /// A copy has the ACLs of its source only.
  private func removeInheritedACLs(of copy: borrowing Descriptor) throws(Errno) {
    try copy.removeIfPresent(ACLAttribute.access.cName)
    if status.isDirectory { try copy.removeIfPresent(ACLAttribute.default.cName) }
  }
}

extension CopiedAttributes {
  /// The attributes that a directory's copy gets.
  init(of directory: LayerDirectory) throws(Errno) { try self.init(directory.attributes(), directory) }

  /// Whether owner, mode and extended attributes are the same.
  func isSame(as other: CopiedAttributes) -> Bool {
    let (own, others) = (status, other.status)
    return (own.mode, own.owner, own.group) == (others.mode, others.owner, others.group)
      && values == other.values
  }

  /// The extended attributes by name. The time that a directory shows is not one of them.
  private var values: [[UInt8]: [UInt8]] {
    let listed = extended.filter { !ReservedAttribute.isTimeMark($0.name) }
    return Dictionary(listed.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
  }

  /// Without the mark by which the times of a directory's lower parts do not count.
  var withoutTimeMark: CopiedAttributes {
    var attributes = self
    attributes.extended.removeAll { ReservedAttribute.isTimeMark($0.name) }
    return attributes
  }

  /// Sets the attributes of a directory that may have others, which it loses.
  func replace(_ former: CopiedAttributes, of directory: borrowing Descriptor) throws(Errno) {
    for name in former.values.keys where values[name] == nil && !name.starts(with: "security.".utf8) {
      try withCName(name) { name throws(Errno) in try directory.removeIfPresent(name) }
    }
    try set(on: directory)
  }
}
