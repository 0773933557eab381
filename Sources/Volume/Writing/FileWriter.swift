import Fuse
import Glibc
import Layers
import Posix

/// Requests that change the content and the attributes of nodes, on a writable mount.
final class FileWriter: Sendable {
  let store: NodeStore
  let copyUp: NodeCopyUp
  let descriptors: WriteDescriptors
  /// nil unless tables of strings are merged.
  let tables: TableWriter?
  let kernel: Locked<(any KernelNotifier)?>
  private let pages: PageKeeper?

  /// XATTR_CREATE.
  private static let mustCreate: CInt = 1

  init(
    store: NodeStore, copyUp: NodeCopyUp, descriptors: WriteDescriptors, tables: TableWriter?,
    kernel: Locked<(any KernelNotifier)?>, pages: PageKeeper?
  ) {
    (self.store, self.copyUp, self.descriptors, self.tables) = (store, copyUp, descriptors, tables)
    (self.kernel, self.pages) = (kernel, pages)
  }

  var queue: InvalidationQueue { copyUp.queue }
  private var intents: IntentLog? { copyUp.intents }

  // MARK: - Content

  /// - Parameters:
  ///   - appends: whether to write at the end, wherever the kernel takes it to be.
  ///   - isMapped: whether the kernel writes back what programs have written to a mapping: then there is no caller.
  func write(
    _ bytes: UnsafeRawBufferPointer, to node: NodeID, at offset: Int64, appends: Bool, isMapped: Bool = false,
    _ reply: consuming Reply<ReplyKind.Write>
  ) {
    let count: Int
    do throws(Errno) {
      // One that is sent again goes to where it went before.
      let isAppended = appends && !reply.isResent
      let (written, after) = try changingContent(
        of: node, appends: appends, caller: reply.credentials, isMapped: isMapped
      ) { file throws(Errno) in
        try store.awaitingFreedSpace { () throws(Errno) in
          try file.write(bytes, at: offset, appends: isAppended)
        }
      }
      count = written
      let end = UInt64(clamping: offset) &+ UInt64(count)
      // Where a layer's file has grown meanwhile, the kernel has kept the bytes for another part of the file.
      if isAppended, after.size != end {
        queue.add([Invalidation(subject: .file(node), aspects: .content)])
      }
      store.recordSize(of: node, atLeast: end)
      pages?.didWrite(to: node, after)
    } catch {
      // The kernel would keep what was written to a mapping of a file whose flags forbid that.
      if error == .notPermitted { queue.add([Invalidation(subject: .file(node), aspects: .content)]) }
      return reply.fail(error)
    }
    reply.send(count: count)
  }

  func allocate(
    _ node: NodeID, mode: CInt, at offset: Int64, count: Int64, _ reply: consuming Reply<ReplyKind.Status>
  ) {
    do throws(Errno) {
      let (_, after) = try changingContent(of: node, appends: false, caller: reply.credentials) {
        file throws(Errno) in
        try file.allocate(mode: mode, at: offset, count: count)
      }
      store.recordSize(of: node, after.size)
      pages?.didWrite(to: node, after)
    } catch {
      return reply.fail(error)
    }
    reply.send()
  }

  /// Changes the content of a file, which the upper layer has from then on.
  /// - Parameters:
  ///   - appends: whether bytes are added at the end, wherever that is.
  ///   - caller: takes set-user-ID and set-group-ID bits away.
  ///   - isMapped: whether the file's owner counts as the writer.
  /// - Returns: what the body returns, and the attributes after that.
  /// - Throws: EPERM if the flags of chattr(1) forbid it.
  private func changingContent<Result>(
    of node: NodeID, appends: Bool, caller: Credentials, isMapped: Bool = false,
    _ body: (LayerFile) throws(Errno) -> Result
  ) throws(Errno) -> (Result, FileStatus) {
    let present = descriptors.file(of: node, identity: try store.identity(of: node))
    let purpose: NodeCopyUp.Purpose = appends ? .append : .change
    var writer = EntryOwner(caller)
    if present == nil {
      FileSystemUser.actAsSelf()
      if isMapped { writer = EntryOwner(try attributes(of: node)) }
      try copyUp.file(node, by: writer, for: purpose)
      try tables?.stage(node)
    }
    return try changing(
      node, .old,
      { () throws(Errno) in
        var (file, status) = if let present { (present, try present.attributes()) } else { try open(node) }
        // It may have been opened before they were set.
        guard status.permits(purpose) else { throw .notPermitted }
        if try clearPrivileges(of: file, status, node, caller) { status = try file.attributes() }
        if isMapped { writer = EntryOwner(status) }
        return (file, status)
      },
      { file throws(Errno) in
        try copyUp.upper.asWriter(writer) { () throws(Errno) in try body(file) }
      })
  }

  /// Opens a file for writing, and keeps it open.
  private func open(_ node: NodeID) throws(Errno) -> (LayerFile, FileStatus) {
    let (file, status) = try store.evictingOnDemand { () throws(Errno) in
      try store.openUpperFileForWriting(node)
    }
    // With O_APPEND it would be of no use once the flag is cleared.
    if !status.isAppendOnly { descriptors.keep(file, status.identity, of: node) }
    return (file, status)
  }

  /// Takes the set-user-ID and set-group-ID bits away that a change of the file by this user takes away.
  /// - Returns: whether there were any.
  private func clearPrivileges(
    of file: LayerFile, _ status: FileStatus, _ node: NodeID, _ caller: Credentials
  ) throws(Errno) -> Bool {
    let mode = status.mode
    if mode & (S_ISUID | S_ISGID) == 0 || mayKeepPrivileges(caller.caller) { return false }
    // A group's member keeps its bit where the group may not execute the file.
    let keepsGroup =
      mode & S_IXGRP == 0 && (caller.group == status.group || caller.caller.isMember(of: status.group))
    let bits = mode & (keepsGroup ? S_ISUID : S_ISUID | S_ISGID)
    if bits == 0 { return false }
    var changes = AttributeChanges()
    changes.permissions = mode & 0o7777 & ~bits
    _ = try changing(node, file) { file throws(Errno) in try file.change(changes) }
    // The kernel leaves that to us, and knows the former mode.
    try? kernel.withLock { $0 }?.invalidateAttributes(of: node)
    return true
  }

  /// The same for a file that programs write to directly: the kernel asks for it before a write, and no WRITE follows. It
  /// does not say whether the caller has the file open for writing.
  private func clearPrivileges(ofWritten node: NodeID, _ caller: Credentials) throws(Errno) {
    try store.withUpperFile(of: node) { file throws(Errno) in
      _ = try clearPrivileges(of: file, try file.attributes(), node, caller)
    }
  }

  /// Whether what a caller does leaves the set-user-ID and set-group-ID bits. The kernel writes back what programs have
  /// written to a mapping, which clears none on any file system; no thread is said to do that.
  private func mayKeepPrivileges(_ caller: Caller) -> Bool {
    (caller.user == 0 && caller.thread == 0) || caller.hasCapability(.keepSetID)
  }

  /// Changes a file of the upper layer, so that the events of the change are known as ours.
  /// - Returns: what the body returns, and the attributes after that.
  private func changing<Result>(
    _ node: NodeID, _ times: OwnChanges.KnownTimes, _ open: () throws(Errno) -> (LayerFile, FileStatus),
    _ body: (LayerFile) throws(Errno) -> Result
  ) throws(Errno) -> (Result, FileStatus) {
    if let own = copyUp.own {
      return try own.changing(
        node, times: times, open, { file throws(Errno) in try file.attributes() }, body)
    }
    let (file, _) = try open()
    return (try body(file), try file.attributes())
  }

  func changing<Result>(
    _ node: NodeID, _ file: LayerFile, _ times: OwnChanges.KnownTimes = .same,
    _ body: (LayerFile) throws(Errno) -> Result
  ) throws(Errno) -> (Result, FileStatus) {
    try changing(node, times, { () throws(Errno) in (file, try file.attributes()) }, body)
  }

  func synchronize(_ node: NodeID, dataOnly: Bool, _ reply: consuming Reply<ReplyKind.Status>) {
    do throws(Errno) {
      // What lies in layers below was not written by this mount.
      if try store.isInUpperLayer(node) {
        try store.withUpperFile(of: node) { file throws(Errno) in
          try file.reopened([.read]).synchronize(dataOnly: dataOnly)
        }
      }
    } catch {
      return reply.fail(error)
    }
    reply.send()
  }

  func synchronizeDirectory(_ node: NodeID, dataOnly: Bool, _ reply: consuming Reply<ReplyKind.Status>) {
    do throws(Errno) {
      let merged = try store.isDetached(node) ? copyUp.directory(node) : store.merged(of: node)
      if merged.isInUpperLayer { try merged.top.synchronize(dataOnly: dataOnly) }
    } catch {
      return reply.fail(error)
    }
    reply.send()
  }

  // MARK: - Attributes

  func setAttributes(
    of node: NodeID, _ changes: AttributeChanges, _ reply: consuming Reply<ReplyKind.Attributes>
  ) {
    var attributes: NodeAttributes
    let caller = reply.caller
    do throws(Errno) {
      if try store.isDirectory(node) {
        let merged = try copyUp.directory(node)
        try changeDirectory(node, merged) { directory throws(Errno) in
          try store.check(changes, directory, by: caller)
          try merged.change(changes)
        }
      } else if try isChange(changes, node, caller) {
        try tables?.refuseReplaced(node)
        try changeFile(node, changes, reply.credentials)
      } else if store.isWrittenDirectly(node) {
        try clearPrivileges(ofWritten: node, reply.credentials)
      }
      if let size = changes.size { store.recordSize(of: node, size) }
      store.recordAttributeChange(of: node)
      attributes = try store.evictingOnDemand { () throws(Errno) in try store.attributes(of: node) }
    } catch {
      return reply.fail(error)
    }
    // Unlike those of GETATTR, the kernel takes them even if another program's change has invalidated them meanwhile.
    attributes.timeout = 0
    reply.send(attributes)
    tables?.settle(node)
  }

  private func changeFile(
    _ node: NodeID, _ changes: AttributeChanges, _ credentials: Credentials
  ) throws(Errno) {
    try copyUp.file(node, by: EntryOwner(credentials), size: changes.size)
    try tables?.stage(node)
    try store.withUpperFile(of: node) { file throws(Errno) in
      try store.check(changes, file, by: credentials.caller)
      let group = changes.setsOwner ? try file.attributes().group : nil
      var (_, after) = try changing(node, file, .new) { file throws(Errno) in try file.change(changes) }
      if changes.modified != nil { store.recordSetTime(of: node, after) }
      // Whether the caller is in the group that the file had before decides.
      if let group { after.group = group }
      if changes.size != nil || changes.setsOwner {
        _ = try clearPrivileges(of: file, after, node, credentials)
      }
    }
  }

  /// Whether there is anything to do to a file: chown(2) with its present owner and group clears bits only, where there are
  /// any. The kernel sends the same before a WRITE of a user who is not the owner, which then clears them itself.
  private func isChange(
    _ changes: AttributeChanges, _ node: NodeID, _ caller: Caller
  ) throws(Errno) -> Bool {
    if !changes.renewsOwner { return true }
    let attributes = try attributes(of: node)
    return attributes.mode & (S_ISUID | S_ISGID) != 0
      && PermissionCheck(attributes: attributes, acl: nil).isOwned(by: caller)
  }

  private func attributes(of node: NodeID) throws(Errno) -> FileStatus {
    try store.evictingOnDemand { () throws(Errno) in try store.attributes(of: node).attributes }
  }

  func setExtendedAttribute(
    _ name: CName, of node: NodeID, _ value: UnsafeRawBufferPointer, flags: CInt,
    _ reply: consuming Reply<ReplyKind.Status>
  ) {
    do throws(Errno) {
      // Programs copy them with a file's attributes from one place of the mount to another.
      if ReservedAttribute.isOwn(name) { return reply.send() }
      try allow(name)
      let (caller, writer) = (reply.caller, EntryOwner(reply.credentials))
      let flags = reply.mayBeDone(intents) ? flags & ~Self.mustCreate : flags
      try changeEntry(node, by: writer) { entry throws(Errno) in
        try store.check(extendedAttribute: name, entry, by: caller)
        if flags & Self.mustCreate != 0 { try intend(entry, name, mustExist: false) }
        try copyUp.upper.asOwner(writer) { () throws(Errno) in
          try entry.setExtendedAttribute(name, value, flags: flags)
        }
        if ACLAttribute.isAccess(name) { try clearGroupID(of: entry, caller) }
      }
    } catch {
      return reply.fail(error)
    }
    reply.send()
    tables?.settle(node)
  }

  func removeExtendedAttribute(_ name: CName, of node: NodeID, _ reply: consuming Reply<ReplyKind.Status>) {
    do throws(Errno) {
      try allow(name)
      let (mayBeDone, caller) = (reply.mayBeDone(intents), reply.caller)
      try changeEntry(node, by: EntryOwner(reply.credentials)) { entry throws(Errno) in
        try store.check(extendedAttribute: name, entry, by: caller)
        do throws(Errno) {
          try intend(entry, name, mustExist: true)
          try entry.removeExtendedAttribute(name)
        } catch {
          guard error == .noData, mayBeDone else { throw error }
        }
      }
    } catch {
      return reply.fail(error)
    }
    reply.send()
    tables?.settle(node)
  }

  /// Takes the set-group-ID bit from an entry that got an ACL of a caller outside its group, as every file system does.
  private func clearGroupID(of entry: any ChangeableEntry, _ caller: Caller) throws(Errno) {
    try entry.withDescriptor { descriptor throws(Errno) in
      let status = try descriptor.attributes()
      guard status.mode & S_ISGID != 0, !caller.isMember(of: status.group), !mayKeepPrivileges(caller)
      else { return }
      try descriptor.changeMode(status.mode & 0o7777 & ~S_ISGID)
    }
  }

  /// Records that an attribute is about to be made or removed, which can be done once only.
  /// - Throws: ENODATA, EEXIST.
  private func intend(_ entry: any ChangeableEntry, _ name: CName, mustExist: Bool) throws(Errno) {
    guard let intents else { return }
    do throws(Errno) {
      _ = try entry.withDescriptor { descriptor throws(Errno) in
        try descriptor.extendedAttribute(name, into: UnsafeMutableRawBufferPointer(start: nil, count: 0))
      }
      if !mustExist { throw .fileExists }
    } catch {
      if error == .fileExists || (error == .noData && mustExist) { throw error }
      // The change itself finds what else is wrong.
    }
    intents.begin()
  }

  /// - Parameter merged: the directory, which the upper layer has.
  func changeDirectory(
    _ node: NodeID, _ merged: MergedDirectory, _ body: (LayerDirectory) throws(Errno) -> Void
  ) throws(Errno) {
    let directory = merged.top
    guard let own = copyUp.own else { return try body(directory) }
    _ = try own.changing(
      node, isDirectory: true, { () throws(Errno) in (directory, try directory.attributes()) },
      { directory throws(Errno) in try directory.attributes() }, body)
  }

  /// Changes a directory or a file, which the upper layer has from then on.
  private func changeEntry(
    _ node: NodeID, by writer: EntryOwner, _ body: (any ChangeableEntry) throws(Errno) -> Void
  ) throws(Errno) {
    if try store.isDirectory(node) {
      try changeDirectory(node, copyUp.directory(node), body)
    } else {
      try copyUp.file(node, by: writer)
      try tables?.stage(node)
      try store.withUpperFile(of: node) { file throws(Errno) in
        _ = try changing(node, file) { file throws(Errno) in try body(file) }
      }
    }
    store.recordAttributeChange(of: node)
  }

  /// - Throws: EPERM for attributes that have a meaning of their own: bundlefs's, and those of overlayfs.
  private func allow(_ name: CName) throws(Errno) {
    if ReservedAttribute.isOwn(name) || ReservedAttribute.isMarker(name) { throw .notPermitted }
  }
}
