import Posix

/// The users who may read a file, as far as owner, group and mode tell. Who is in which group is unknown, and root may read
/// everything.
struct TableReaders {
  private let status: FileStatus

  init(_ status: FileStatus) { self.status = status }

  /// Whether every user who may read this file may read another one, whichever groups he is in.
  func areAmong(_ other: TableReaders) -> Bool {
    if status.mode & 0o400 != 0, !other.letsRead(owner: status.owner) { return false }
    if status.mode & 0o040 != 0, !other.letsRead(inGroup: status.group, besides: status.owner) {
      return false
    }
    return status.mode & 0o004 == 0 || other.letsRead(outsideGroup: status.group, besides: status.owner)
  }

  private func letsRead(owner: UInt32) -> Bool {
    if owner == 0 { return true }
    return owner == status.owner ? has(0o400) : has(0o044)
  }

  private func letsRead(inGroup group: UInt32, besides owner: UInt32) -> Bool {
    letsOwnerRead(besides: owner) && has(group == status.group ? 0o040 : 0o044)
  }

  private func letsRead(outsideGroup group: UInt32, besides owner: UInt32) -> Bool {
    letsOwnerRead(besides: owner) && has(group == status.group ? 0o004 : 0o044)
  }

  /// The owner is in any group, and is not given what the mode gives groups and others.
  private func letsOwnerRead(besides owner: UInt32) -> Bool {
    status.owner == 0 || status.owner == owner || has(0o400)
  }

  private func has(_ permissions: UInt32) -> Bool { status.mode & permissions == permissions }
}

/// A merged table has owner, group and mode of the topmost one, and no ACL: all who may read that one get the keys of all.
extension MergedTables.Contributor {
  /// Whether all who may read the topmost table may read this one, too, but for ACLs.
  func isReadable(forReadersOf top: MergedTables.Contributor) -> Bool {
    TableReaders(top.status).areAmong(TableReaders(status))
  }

  /// The content.
  /// - Throws: ESTALE if it is another file by now, or other users may read it.
  func readForPresentReaders() throws(Errno) -> [UInt8] {
    let file = try withCName(name) { name throws(Errno) in
      try directory.openFile(name, identity: status.identity)
    }
    let content = try file.readAll(limit: MergedTables.largest)
    let present = try file.attributes()
    guard (present.mode, present.owner, present.group) == (status.mode, status.owner, status.group) else {
      throw .staleFileHandle
    }
    return content
  }

  /// Whether permissions are set beside the mode.
  /// - Throws: ESTALE if it is another file by now.
  func hasAccessList() throws(Errno) -> Bool {
    if directory.isInArchive { return false }
    do throws(Errno) {
      return try withCName(name) { name throws(Errno) in
        let buffer = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        return try directory.extendedAttribute(
          ACLAttribute.access.cName, of: name, identity: status.identity, into: buffer) > 0
      }
    } catch {
      if error == .noData || error == .notSupported { return false }
      throw error
    }
  }
}
