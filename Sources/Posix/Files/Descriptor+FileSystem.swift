import CLinux
import CLibrary

/// The file system and the mount of an open file.
extension Descriptor {
  /// Calls fstatvfs(3).
  public func statvfs() throws(Errno) -> statvfs {
    var result = CLibrary.statvfs()
    _ = try checked { fstatvfs(rawValue, &result) }
    return result
  }

  /// The mount flags (`f_flag` of statvfs(3)).
  public func mountFlags() throws(Errno) -> UInt { UInt(try statvfs().f_flag) }

  /// Whether the file system or the mount of this file is read-only.
  public func isReadOnly() throws(Errno) -> Bool { try mountFlags() & UInt(ST_RDONLY) != 0 }

  /// Whether any process has this file open for writing, or mapped so, by a lease that is taken for a moment (F_SETLEASE).
  /// - Returns: nil where that cannot be told: without `CAP_LEASE`, and on file systems without leases.
  public func isOpenForWriting() -> Bool? {
    switch linux_is_open_for_writing(rawValue) {
    case 0: false
    case 1: true
    default: nil
    }
  }

  /// The bytes available to unprivileged users.
  public func freeBytes() throws(Errno) -> UInt64 {
    let result = try statvfs()
    let (bytes, overflows) = UInt64(result.f_bavail).multipliedReportingOverflow(by: UInt64(result.f_frsize))
    return overflows ? .max : bytes
  }

  /// Has each write append (`O_APPEND` by fcntl(2)).
  public func setAppending() throws(Errno) { _ = try checked { fcntl(rawValue, F_SETFL, O_APPEND) } }

  /// The magic number of the file system (`f_type` of statfs(2)).
  public func fileSystemType() throws(Errno) -> Int {
    try checked { linux_fstatfs_type(rawValue) }
  }

  /// Whether this directory, which must be open for reading, has the flag of ext4, f2fs and tmpfs by which the case of
  /// names does not count (`chattr +F`).
  public func hasCasefoldFlag() -> Bool { linux_has_casefold_flag(rawValue) }

  /// The device number, from statx(2) with `AT_STATX_DONT_SYNC`.
  public func device() throws(Errno) -> UInt64 {
    var device: UInt64 = 0
    _ = try checked { linux_device(rawValue, &device) }
    return device
  }

  /// The ID of the mount that holds the file, from statx(2) with `AT_STATX_DONT_SYNC`; nil before Linux 5.8.
  public func mountID() throws(Errno) -> Int? {
    var id: UInt64 = 0
    _ = try checked { linux_mount_id(rawValue, &id) }
    return id == 0 ? nil : Int(clamping: id)
  }

  /// The ID of the mount that holds the file, which is never reused; nil before Linux 6.8.
  public func uniqueMountID() throws(Errno) -> UInt64? {
    var id: UInt64 = 0
    _ = try checked { linux_unique_mount_id(rawValue, &id) }
    return id == 0 ? nil : id
  }

  /// Opens a node of the FUSE mount that holds this directory, which must be open for reading, with `O_PATH`.
  /// - Throws: EPERM without `CAP_DAC_READ_SEARCH`; ESTALE if the kernel does not know the node.
  public func open(node: UInt64) throws(Errno) -> Descriptor {
    Descriptor(owning: try checked { linux_open_fuse_node(rawValue, node) })
  }

  /// The size in bytes of a node of the FUSE mount that holds this directory, which must be open for reading.
  /// - Parameter forceSync: whether the kernel sends GETATTR instead of using its cached size.
  /// - Throws: EPERM without `CAP_DAC_READ_SEARCH`; ESTALE if the kernel does not know the node.
  public func size(ofNode node: UInt64, forceSync: Bool) throws(Errno) -> UInt64 {
    var size: UInt64 = 0
    _ = try checked { linux_fuse_size(rawValue, node, forceSync, &size) }
    return size
  }

  /// Clones the mount at a path with open_tree(2). What is open in the clone does not keep the mount busy.
  /// - Throws: EPERM without `CAP_SYS_ADMIN`; EINVAL if the mount cannot be cloned.
  public static func cloneMount(at path: CName) throws(Errno) -> Descriptor {
    Descriptor(owning: try checked { linux_clone_mount_at(path) })
  }

  /// Clones the mount below this directory with open_tree(2), without submounts, private, with
  /// `MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSYMFOLLOW`, and `MOUNT_ATTR_RDONLY` unless it is to be writable.
  /// - Throws: EPERM without `CAP_SYS_ADMIN`; EINVAL if the mount cannot be cloned; ENOSYS before Linux 5.12.
  public func cloneMount(isWritable: Bool = false) throws(Errno) -> Descriptor {
    Descriptor(owning: try checked { linux_clone_mount(rawValue, isWritable) })
  }
}
