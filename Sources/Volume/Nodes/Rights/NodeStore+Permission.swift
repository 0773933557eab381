import Fuse
import Glibc
import Layers
import Posix

/// The topmost part of a directory, as a reply has given it to the kernel.
struct ReportedDirectory {
  let identity: FileIdentity
  let rights: AccessRights
}

/// Checks of what callers may do, where the kernel decided by the attributes of an entry that may be another one by now.
extension NodeStore {
  // MARK: - Directories

  /// Records a directory's attributes that a reply is about to give to the kernel.
  func recordReport(of merged: MergedDirectory, _ attributes: FileStatus, _ node: NodeID) {
    if !isShared { return }
    let reported = ReportedDirectory(
      identity: merged.attributeSource.identity, rights: AccessRights(attributes))
    let isAnother = table.withLock { table -> Bool in
      guard let state = try? Self.state(of: node, table) else { return false }
      defer { state.reported = reported }
      guard let former = state.reported else {
        // A predecessor may have reported others.
        if state.isInherited { state.wasReplaced = true }
        return false
      }
      let isSame = former.identity == reported.identity
      // Without birth times, only a directory with the same rights is taken for the same one.
      if isSame, reported.identity.hasBirthTime || former.rights == reported.rights { return false }
      if former.rights != reported.rights || state.hasACL { state.wasReplaced = true }
      return !state.wasReplaced
    }
    guard isAnother, (try? Self.accessList(of: merged.attributeSource)) != .some(nil) else { return }
    table.withLock { table in (try? Self.state(of: node, table))?.wasReplaced = true }
  }

  /// Checks that a caller may do with a directory what the kernel has allowed by the attributes of its former topmost part.
  /// - Throws: ESTALE if it may not; the kernel then asks for the attributes again and checks them.
  func check(
    _ access: Access, in merged: MergedDirectory, _ node: NodeID, for caller: Caller
  ) throws(Errno) {
    if !isShared || caller.user == 0 { return }
    let isSame = table.withLock { table in
      guard let state = try? Self.state(of: node, table) else { return false }
      return !state.wasReplaced && state.reported?.identity == merged.attributeSource.identity
        && merged.attributeSource.identity.hasBirthTime
    }
    if isSame { return }
    guard try permissions(of: merged.attributeSource).allows(access, to: caller) else {
      throw .staleFileHandle
    }
  }

  /// Checks that a caller may add and remove names of a directory now.
  /// - Throws: ESTALE if it may not, as `check`.
  func checkChange(of merged: MergedDirectory, by caller: Caller) throws(Errno) {
    if !isShared || caller.user == 0 { return }
    let permissions = try permissions(of: merged.attributeSource)
    guard permissions.allows([.write, .search], to: caller) else { throw .staleFileHandle }
  }

  /// Whether a directory has belonged to another one, so that the kernel must not keep a listing of it: programs that have
  /// opened the former one would read it without a check.
  func wasReplaced(_ node: NodeID) -> Bool {
    table.withLock { table in (try? Self.state(of: node, table))?.wasReplaced ?? false }
  }

  private func permissions(of part: LayerDirectory) throws(Errno) -> PermissionCheck {
    let (attributes, list) = (try part.attributes(), try Self.accessList(of: part))
    guard let shownOwners else { return PermissionCheck(attributes: attributes, acl: list) }
    return PermissionCheck(
      attributes: shownOwners.shown(attributes), acl: list.map { shownOwners.shown($0, of: attributes) })
  }

  private static func accessList(of part: LayerDirectory) throws(Errno) -> AccessControlList? {
    try accessList { buffer throws(Errno) in
      try part.extendedAttribute(ACLAttribute.access.cName, into: buffer)
    }
  }

  private static func accessList(
    _ read: (UnsafeMutableRawBufferPointer) throws(Errno) -> Int
  ) throws(Errno) -> AccessControlList? {
    do throws(Errno) {
      let value = try readExtendedAttribute(by: read)
      guard let list = AccessControlList(value) else { throw .ioError }
      return list
    } catch {
      if error == .noData || error == .notSupported { return nil }
      throw error
    }
  }

  // MARK: - Files

  /// Records that the kernel is about to get the ACL of a node, which can allow more than the permission bits.
  func recordACL(of node: NodeID) {
    if !isShared { return }
    table.withLock { table in
      guard let slot = try? table.slot(of: node) else { return }
      if let state = table[slot].directory {
        state.hasACL = true
      } else {
        table[slot].rights = ReportedRights.mixed
      }
    }
  }

  /// Whether every program that was allowed to open a file may open the one that has its name now, so that the node can
  /// follow the name.
  ///
  /// Where only the user that mounted may enter, the layers' own permissions decide. Else owner, group and permission bits
  /// must be those by which each program has opened the former file, neither may have an ACL, and every user must be able to
  /// reach the new file by its path.
  func mayFollow(_ location: FileLocation, of node: NodeID, to found: FileStatus) throws(Errno) -> Bool {
    if !isShared { return true }
    let rights = try table.withLock { table throws(Errno) in table.soleRights(of: try table.slot(of: node)) }
    guard rights == AccessRights(found) else { return false }
    var directory = location.parent
    while true {
      guard try isOpenToAll(directory) else { return false }
      if directory == .root { break }
      directory = try parent(of: directory).directory
    }
    let merged = try merged(of: location.parent)
    return try withCName(location.name) { name throws(Errno) in
      guard case .file(let layer, let attributes) = try merged.lookup(name),
        attributes.identity == found.identity,
        let part = merged.part(of: layer, with: name, attributes.identity)
      else { return false }
      let acl = try Self.accessList { buffer throws(Errno) in
        try part.extendedAttribute(
          ACLAttribute.access.cName, of: name, identity: attributes.identity, into: buffer)
      }
      return acl == nil
    }
  }

  private func isOpenToAll(_ directory: NodeID) throws(Errno) -> Bool {
    let top = try merged(of: directory).attributeSource
    if try shown(top.attributes()).mode & 0o111 != 0o111 { return false }
    return try Self.accessList(of: top) == nil
  }

  // MARK: - Changes

  /// Checks that a caller may remove or rename a name of a directory now. Until that is done, no other request changes the
  /// name, for which the kernel holds the directory's lock, and only trusted users write to the upper layer.
  /// - Throws: ESTALE if it may not change the directory; EPERM for another user's entry in a sticky one.
  func checkRemoval(
    of name: CName, from merged: MergedDirectory, by caller: Caller
  ) throws(Errno) {
    try checkChange(of: merged, by: caller)
    guard try isStickyFor(caller, merged), let entry = try merged.lookup(name) else { return }
    let permissions = PermissionCheck(attributes: entry.attributes, acl: nil)
    guard permissions.isOwned(by: caller) else { throw .notPermitted }
  }

  private func isStickyFor(_ caller: Caller, _ merged: MergedDirectory) throws(Errno) -> Bool {
    if !isShared || caller.user == 0 { return false }
    let attributes = try merged.attributeSource.attributes()
    return attributes.mode & UInt32(S_ISVTX) != 0 && attributes.owner != caller.user
  }

  /// Checks that a caller may change the attributes of a file or directory, which is open.
  /// - Throws: EPERM.
  func check(
    _ changes: AttributeChanges, _ entry: some ChangeableEntry, by caller: Caller
  ) throws(Errno) {
    if !isShared || caller.user == 0 { return }
    guard try Self.permissions(of: entry).allows(changes, to: caller) else { throw .notPermitted }
  }

  /// Checks that a caller may change the flags of a file or directory, which is open.
  /// - Throws: EPERM.
  func checkOwner(of entry: any ChangeableEntry, by caller: Caller) throws(Errno) {
    if !isShared || caller.user == 0 { return }
    guard try Self.permissions(of: entry).isOwned(by: caller) else { throw .notPermitted }
  }

  /// Checks that a caller may set or remove an extended attribute of a file or directory, which is open. Those of other name
  /// spaces take capabilities, whatever the entry is.
  /// - Throws: EPERM for an ACL of another owner's; EACCES.
  func check(
    extendedAttribute name: CName, _ entry: any ChangeableEntry, by caller: Caller
  ) throws(Errno) {
    if !isShared || caller.user == 0 { return }
    if strncmp(name, "system.posix_acl_", 17) == 0 {
      guard try Self.permissions(of: entry).isOwned(by: caller) else { throw .notPermitted }
    } else if strncmp(name, "user.", 5) == 0 {
      guard try Self.permissions(of: entry).allows(.write, to: caller) else { throw .permissionDenied }
    }
  }

  private static func permissions(of entry: any ChangeableEntry) throws(Errno) -> PermissionCheck {
    try entry.withDescriptor { descriptor throws(Errno) in
      PermissionCheck(
        attributes: try descriptor.attributes(),
        acl: try accessList { buffer throws(Errno) in
          try descriptor.extendedAttribute(ACLAttribute.access.cName, into: buffer)
        })
    }
  }
}
