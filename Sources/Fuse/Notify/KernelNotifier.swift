import CFuse
import Posix

/// What can be taken back from the kernel's caches. Tests put a stub in its place.
///
/// None of these may be called by a thread that answers a request or holds a lock: taking back an entry
/// waits for lookups in its directory, taking back pages for reads of them.
public protocol KernelNotifier: Sendable {
  /// Drops a name of a directory, whether it stood for an entry or for its absence.
  /// - Throws: ENOENT when the kernel did not know it.
  func invalidateEntry(_ name: [UInt8], in parent: NodeID) throws(Errno)
  /// Lets a name of a directory be asked for again at its next use; who stands in the directory of that name
  /// stays there.
  /// - Throws: as `invalidateEntry`.
  func expireEntry(_ name: [UInt8], in parent: NodeID) throws(Errno)
  /// Drops a name of a directory, and lets those who watch the file that it stood for know that this is no more.
  /// - Parameter child: the file; nothing happens to another one.
  /// - Throws: as `invalidateEntry`.
  func deleteEntry(_ name: [UInt8], in parent: NodeID, of child: NodeID) throws(Errno)
  /// Drops a node's attributes only.
  /// - Throws: as `invalidateEntry`.
  func invalidateAttributes(of node: NodeID) throws(Errno)
  /// Drops a node's attributes and its pages: a file's content, a directory's listing.
  /// - Throws: as `invalidateEntry`.
  func invalidateContent(of node: NodeID) throws(Errno)
  /// Puts a file's content into its pages, from the beginning.
  /// - Throws: as `invalidateEntry`.
  func store(_ content: UnsafeRawBufferPointer, in node: NodeID) throws(Errno)
  /// The size in bytes by which the kernel now cuts what it reads of a file, without a request to us.
  /// - Throws: EPERM without CAP_DAC_READ_SEARCH; ESTALE when the kernel does not know the node, or the mount
  ///   cannot be reached by its path any more.
  func size(of node: NodeID) throws(Errno) -> UInt64
  /// Has the kernel ask us for a file's attributes. If it had another size, it waits for reads of the file.
  /// - Throws: as `size`.
  func refreshAttributes(of node: NodeID) throws(Errno)
  /// The mount's root, open as a place only. It is opened each time, and to be let go soon: a descriptor that is
  /// kept would keep the mount from being unmounted.
  /// - Throws: ESTALE when the mount's path leads to another file system by now; as open(2).
  func openRoot() throws(Errno) -> Descriptor
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
    // As far as the kernel knows the file has no name left.
    try invalidateAttributes(of: child)
  }

  public func invalidateAttributes(of node: NodeID) throws(Errno) {
    try notify { fuse_lowlevel_notify_inval_inode($0, node.rawValue, -1, 0) }
  }

  public func invalidateContent(of node: NodeID) throws(Errno) {
    try notify { fuse_lowlevel_notify_inval_inode($0, node.rawValue, 0, 0) }
  }

  public func store(_ content: UnsafeRawBufferPointer, in node: NodeID) throws(Errno) {
    var vector = fuse_bufvec()
    vector.count = 1
    vector.buf.size = content.count
    // It is only read. One copy into the kernel's pages is enough: a pipe on the way would take another.
    vector.buf.mem = UnsafeMutableRawPointer(mutating: content.baseAddress)
    vector.buf.fd = -1
    try notify { fuse_lowlevel_notify_store($0, node.rawValue, 0, &vector, FUSE_BUF_NO_SPLICE) }
  }

  public func size(of node: NodeID) throws(Errno) -> UInt64 {
    try openReadableRoot().size(ofNode: node.rawValue, forceSync: false)
  }

  public func refreshAttributes(of node: NodeID) throws(Errno) {
    _ = try openReadableRoot().size(ofNode: node.rawValue, forceSync: true)
  }

  public func openRoot() throws(Errno) -> Descriptor {
    let root = try withCName(place.path) { name throws(Errno) in
      try Descriptor.open(name, [.pathOnly, .directory])
    }
    // Whatever may be mounted on top is not asked anything.
    guard try root.device() == place.device else { throw .staleFileHandle }
    return root
  }

  private func openReadableRoot() throws(Errno) -> Descriptor {
    try openRoot().open(".", [.read, .directory])
  }

  private func notify(_ send: (OpaquePointer) -> CInt) throws(Errno) {
    let result = send(pointer)
    if result != 0 { throw Errno(rawValue: -result) }
  }
}

private func withChars(_ bytes: [UInt8], _ body: (UnsafePointer<CChar>?) -> CInt) -> CInt {
  // libfuse sends the NUL that ends a C string along.
  (bytes + [0]).withUnsafeBytes { body($0.baseAddress?.assumingMemoryBound(to: CChar.self)) }
}
