import CFuse
import Glibc
import Posix

/// The callbacks for requests that change content.
func addContentChanges(_ table: inout fuse_lowlevel_ops) {
  table.write = { request, node, bytes, size, offset, info in
    guard let request else { return }
    let bytes = UnsafeRawBufferPointer(start: bytes, count: size)
    let node = NodeID(rawValue: node)
    // Page cache writeback of a mapping carries no caller; it would appear to be root's.
    if let info, info.pointee.writepage != 0 {
      fileSystem(request, .write).writeBack(bytes, to: node, at: Int64(offset), reply: Reply(request))
      return
    }
    fileSystem(request, .write).write(
      bytes, to: node, at: Int64(offset), appends: (info?.pointee.flags ?? 0) & O_APPEND != 0,
      reply: Reply(request))
  }
  table.fallocate = { request, node, mode, offset, count, _ in
    guard let request else { return }
    fileSystem(request, .change).allocate(
      NodeID(rawValue: node), mode: mode, at: Int64(offset), count: Int64(count), reply: Reply(request))
  }
  table.fsync = { request, node, dataOnly, _ in
    guard let request else { return }
    fileSystem(request, .fsync).synchronize(
      NodeID(rawValue: node), dataOnly: dataOnly != 0, reply: Reply(request))
  }
  table.fsyncdir = { request, node, dataOnly, _ in
    guard let request else { return }
    fileSystem(request, .fsync).synchronizeDirectory(
      NodeID(rawValue: node), dataOnly: dataOnly != 0, reply: Reply(request))
  }
}

/// The callbacks for requests that change attributes.
func addAttributeChanges(_ table: inout fuse_lowlevel_ops) {
  table.setattr = { request, node, attributes, wanted, _ in
    guard let request, let attributes else { return }
    fileSystem(request, .setattr).setAttributes(
      of: NodeID(rawValue: node),
      AttributeChanges(attributes.pointee, wanted, isPrivileged: fuse_req_ctx(request).pointee.uid == 0),
      reply: Reply(request))
  }
  table.setxattr = { request, node, name, value, size, flags in
    guard let request, let name else { return }
    fileSystem(request, .change).setExtendedAttribute(
      name, of: NodeID(rawValue: node), UnsafeRawBufferPointer(start: value, count: size), flags: flags,
      reply: Reply(request))
  }
  table.removexattr = { request, node, name in
    guard let request, let name else { return }
    fileSystem(request, .change).removeExtendedAttribute(
      name, of: NodeID(rawValue: node), reply: Reply(request))
  }
}

extension AttributeChanges {
  /// - Parameter wanted: the `FUSE_SET_ATTR_` bits of libfuse.
  fileprivate init(_ attributes: stat, _ wanted: CInt, isPrivileged: Bool) {
    self.init()
    func sets(_ bit: CInt) -> Bool { wanted & bit != 0 }
    func time(_ set: CInt, _ now: CInt, _ time: timespec) -> Time? {
      if sets(now) { return .now }
      if !sets(set) { return nil }
      return .at(TimeSpec(seconds: Int64(time.tv_sec), nanoseconds: UInt32(clamping: time.tv_nsec)))
    }
    if sets(FUSE_SET_ATTR_MODE) { permissions = attributes.st_mode & 0o7777 }
    if sets(FUSE_SET_ATTR_UID) { owner = attributes.st_uid }
    if sets(FUSE_SET_ATTR_GID) { group = attributes.st_gid }
    if sets(FUSE_SET_ATTR_SIZE) { size = UInt64(exactly: attributes.st_size) }
    accessed = time(FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, attributes.st_atim)
    modified = time(FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, attributes.st_mtim)
    // The kernel sends no other request without an attribute, and leaves to the file system what it clears.
    renewsOwner = self == AttributeChanges()
    clearsPrivileges = !isPrivileged
  }
}

/// The callbacks for requests that create, remove and rename entries.
///
/// libfuse replies ENOSYS to CREATE, and the kernel sends MKNOD from then on. After CREATE it would send RELEASE when the
/// file is closed, though OPEN is declined.
func addEntryChanges(_ table: inout fuse_lowlevel_ops) {
  table.mknod = { request, parent, name, mode, device in
    make(request, .node(mode: mode, device: UInt64(device)), name, parent)
  }
  table.mkdir = { request, parent, name, mode in
    make(request, .directory(mode: mode & 0o7777), name, parent)
  }
  table.symlink = { request, target, parent, name in
    guard let target else { return }
    make(request, .symbolicLink(target: target), name, parent)
  }
  table.link = { request, node, parent, name in
    guard let request, let name else { return }
    fileSystem(request, .change).makeLink(
      to: NodeID(rawValue: node), name, in: NodeID(rawValue: parent), reply: Reply(request))
  }
  table.unlink = { request, parent, name in remove(request, name, isDirectory: false, parent) }
  table.rmdir = { request, parent, name in remove(request, name, isDirectory: true, parent) }
  table.rename = { request, parent, name, newParent, newName, flags in
    guard let request, let name, let newName else { return }
    fileSystem(request, .change).rename(
      name, in: NodeID(rawValue: parent), to: newName, in: NodeID(rawValue: newParent), flags: flags,
      reply: Reply(request))
  }
}

private func make(_ request: fuse_req_t?, _ entry: NewEntry, _ name: CName?, _ parent: fuse_ino_t) {
  guard let request, let name else { return }
  fileSystem(request, .change).make(entry, name, in: NodeID(rawValue: parent), reply: Reply(request))
}

private func remove(_ request: fuse_req_t?, _ name: CName?, isDirectory: Bool, _ parent: fuse_ino_t) {
  guard let request, let name else { return }
  fileSystem(request, .change).remove(
    name, isDirectory: isDirectory, from: NodeID(rawValue: parent), reply: Reply(request))
}
