import CFuse
import Posix

/// Notifications to the kernel (`FUSE_NOTIFY_*`), which invalidate or fill its caches. Tests use a stub.
///
/// A thread that calls one holds no lock, and processes no request: invalidating an entry waits for lookups in its
/// directory, and invalidating or storing pages waits for reads of them. Debug builds check both. `invalidateAttributes`
/// waits for nothing, and a thread that processes a request may call it.
public protocol KernelNotifier: Sendable {
  /// Invalidates a dentry, positive or negative (`FUSE_NOTIFY_INVAL_ENTRY`).
  /// - Throws: ENOENT if it is not cached.
  func invalidateEntry(_ name: [UInt8], in parent: NodeID) throws(Errno)
  /// Expires a dentry, which keeps working directories and mounts in it valid (`FUSE_EXPIRE_ONLY`).
  /// - Throws: as `invalidateEntry`.
  func expireEntry(_ name: [UInt8], in parent: NodeID) throws(Errno)
  /// Invalidates a dentry and sends `IN_DELETE_SELF` to watches of its inode (`FUSE_NOTIFY_DELETE`).
  /// - Parameter child: the expected node; the kernel ignores the call for another one.
  /// - Throws: as `invalidateEntry`.
  func deleteEntry(_ name: [UInt8], in parent: NodeID, of child: NodeID) throws(Errno)
  /// Invalidates a node's attributes (`FUSE_NOTIFY_INVAL_INODE`).
  /// - Throws: as `invalidateEntry`.
  func invalidateAttributes(of node: NodeID) throws(Errno)
  /// Invalidates a node's attributes and its page cache or cached listing (`FUSE_NOTIFY_INVAL_INODE`).
  /// - Throws: as `invalidateEntry`.
  func invalidateContent(of node: NodeID) throws(Errno)
  /// Stores content in a file's page cache at offset 0 (`FUSE_NOTIFY_STORE`).
  /// - Throws: as `invalidateEntry`.
  func store(_ content: UnsafeRawBufferPointer, in node: NodeID) throws(Errno)
  /// The size in bytes that the kernel caches for a file, without a request. Reads are truncated to it.
  /// - Throws: EPERM without `CAP_DAC_READ_SEARCH`; ESTALE if the kernel does not know the node, or if another file
  ///   system is mounted at the mount's path.
  func size(of node: NodeID) throws(Errno) -> UInt64
  /// Makes the kernel send GETATTR. If the size differs, it waits for reads of the file.
  /// - Throws: as `size`.
  func refreshAttributes(of node: NodeID) throws(Errno)
  /// Makes the kernel send SETATTR for a file's access time. Does not keep the mount busy.
  /// - Throws: EPERM without `CAP_SYS_ADMIN`; as `size`; what the file system answers.
  func setAccessTime(of node: NodeID, _ time: AttributeChanges.Time) throws(Errno)
  /// Opens the mount's root with `O_PATH`, in a clone of the mount where that is permitted.
  /// - Throws: ESTALE if another file system is mounted at the mount's path; errors of open(2). For a mount in another
  ///   mount namespace those of `Mounts.mountFurther`.
  func openRoot() throws(Errno) -> MountRoot
}

/// The root of a mount. Close it soon: it keeps the file system in being.
public struct MountRoot: ~Copyable {
  public let directory: Descriptor
  /// Whether it is in a clone of the mount, and umount(2) of no mount fails with EBUSY because of it.
  public let isDetached: Bool

  public init(_ directory: consuming Descriptor, isDetached: Bool) {
    self.directory = directory
    self.isDetached = isDetached
  }
}

extension Session: KernelNotifier {
  public func invalidateEntry(_ name: [UInt8], in parent: NodeID) throws(Errno) {
    try notify { session in
      withChars(name) { fuse_lowlevel_notify_inval_entry(session, parent.rawValue, $0, name.count) }
    }
  }

  public func expireEntry(_ name: [UInt8], in parent: NodeID) throws(Errno) {
    do throws(Errno) {
      try notify { session in
        withChars(name) {
          fuse_lowlevel_notify_expire_entry(session, parent.rawValue, $0, name.count, FUSE_LL_EXPIRE_ONLY)
        }
      }
    } catch {
      // Before Linux 6.2.
      guard error == .noFunction else { throw error }
      try invalidateEntry(name, in: parent)
    }
  }

  public func deleteEntry(_ name: [UInt8], in parent: NodeID, of child: NodeID) throws(Errno) {
    try notify { session in
      withChars(name) {
        fuse_lowlevel_notify_delete(session, parent.rawValue, child.rawValue, $0, name.count)
      }
    }
    // The notification sets the cached link count to 0.
    try invalidateAttributes(of: child)
  }

  public func invalidateAttributes(of node: NodeID) throws(Errno) {
    try notify(waits: false) { fuse_lowlevel_notify_inval_inode($0, node.rawValue, -1, 0) }
  }

  public func invalidateContent(of node: NodeID) throws(Errno) {
    try notify { fuse_lowlevel_notify_inval_inode($0, node.rawValue, 0, 0) }
  }

  public func store(_ content: UnsafeRawBufferPointer, in node: NodeID) throws(Errno) {
    var vector = fuse_bufvec()
    vector.count = 1
    vector.buf.size = content.count
    // libfuse only reads it. Splicing would copy the content twice.
    vector.buf.mem = UnsafeMutableRawPointer(mutating: content.baseAddress)
    vector.buf.fd = -1
    try notify { fuse_lowlevel_notify_store($0, node.rawValue, 0, &vector, FUSE_BUF_NO_SPLICE) }
  }

  public func size(of node: NodeID) throws(Errno) -> UInt64 {
    try openRoot().readable().size(ofNode: node.rawValue, forceSync: false)
  }

  public func refreshAttributes(of node: NodeID) throws(Errno) {
    _ = try openRoot().readable().size(ofNode: node.rawValue, forceSync: true)
  }

  public func setAccessTime(of node: NodeID, _ time: AttributeChanges.Time) throws(Errno) {
    let file = try openClone().readable().open(node: node.rawValue)
    try file.setTimes(accessed: time, modified: nil)
  }

  public func openRoot() throws(Errno) -> MountRoot {
    do throws(Errno) { return try openClone() } catch {
      // Without `CAP_SYS_ADMIN`, or for a mount that cannot be bound.
      guard !isElsewhere, error == .notPermitted || error == .invalidArgument || error == .noFunction
      else { throw error }
    }
    let root = try withCName(mountPoint.path) { name throws(Errno) in
      try Descriptor.open(name, [.pathOnly, .directory])
    }
    try requireOurs(root)
    return MountRoot(root, isDetached: false)
  }

  private func openClone() throws(Errno) -> MountRoot {
    if isElsewhere {
      // No descriptor of the mount is kept, which would keep it alive after the last process there. In another user
      // namespace the child that mounts has a copy of all mounts of this one.
      return MountRoot(try Mounts.mountFurther(device: descriptor, users: users), isDetached: users < 0)
    }
    let root = try withCName(mountPoint.path) { path throws(Errno) in try Descriptor.cloneMount(at: path) }
    try requireOurs(root)
    return MountRoot(root, isDetached: true)
  }

  /// - Throws: ESTALE for another file system, which is mounted at the mount's path.
  private func requireOurs(_ root: borrowing Descriptor) throws(Errno) {
    // `device` sends no request to a file system that is mounted on top.
    guard try root.device() == mountPoint.device else { throw .staleFileHandle }
  }

  private func notify(waits: Bool = true, _ send: (OpaquePointer) -> CInt) throws(Errno) {
    assert(RequestThread.mayNotify || !waits, "the kernel may wait for the reply that this thread owes")
    LockOrder.assertNoneIsHeld()
    let result = send(pointer)
    if result != 0 { throw Errno(rawValue: -result) }
  }
}

extension MountRoot {
  fileprivate borrowing func readable() throws(Errno) -> Descriptor {
    try directory.open(".", [.read, .directory])
  }
}

private func withChars(_ bytes: [UInt8], _ body: (UnsafePointer<CChar>?) -> CInt) -> CInt {
  // libfuse sends the terminating NUL, too.
  (bytes + [0]).withUnsafeBytes { body($0.baseAddress?.assumingMemoryBound(to: CChar.self)) }
}
