import CLibrary
import Posix

/// Access to entries that can be our own mount, or bind mounts of a part of it, made at any time.
///
/// Most requests to the mount, sent by a thread that answers them, would be answered by no one; not even SIGKILL ends
/// that. So where the layer's mount could not be cloned, the device number is compared first, in ways that never send a
/// request: `O_PATH`, and statx(2) with `AT_STATX_DONT_SYNC`, which on local file systems returns the present attributes.
extension LayerDirectory {
  /// The attributes of an entry.
  /// - Throws: ELOOP for our own mount.
  func outerAttributes(of name: CName, in handle: SharedDescriptor) throws(Errno) -> FileStatus {
    guard covered != nil else { return identified(try handle.descriptor.attributes(of: name)) }
    let cached = try handle.descriptor.cachedAttributes(of: name)
    if isPresent(cached) { return identified(cached) }
    return try outerAttributes(of: handle.descriptor.open(name, [.pathOnly, .noFollow]))
  }

  /// The attributes of an open entry.
  /// - Throws: ELOOP for our own mount.
  func outerAttributes(of descriptor: borrowing Descriptor) throws(Errno) -> FileStatus {
    guard let covered else { return identified(try descriptor.attributes()) }
    let cached = try descriptor.cachedAttributes()
    if isPresent(cached) { return identified(cached) }
    if covered.isOwnMount(cached.identity.device) { throw .tooManySymbolicLinkLevels }
    return identified(try descriptor.attributes())
  }

  /// The attributes of an entry with the identity that this layer gives to it.
  private func identified(_ attributes: FileStatus) -> FileStatus {
    gate.identifiesByRights ? attributes.identifiedByRights : attributes
  }

  /// Whether cached attributes are the present ones: on this directory's file system, if that is a local one.
  private func isPresent(_ cached: FileStatus) -> Bool {
    recordsInodes && cached.identity.device == identity.device
  }

  /// Opens an entry.
  /// - Parameter expected: the identity that it had when it was looked up.
  /// - Throws: ESTALE for our own mount.
  func outerOpen(
    _ name: CName, in handle: SharedDescriptor, _ expected: FileIdentity, _ flags: OpenFlags
  ) throws(Errno) -> Descriptor {
    guard covered != nil, !flags.contains(.pathOnly) else { return try handle.descriptor.open(name, flags) }
    if expected.device == identity.device {
      do throws(Errno) { return try handle.descriptor.openBeneath(name, flags) } catch {
        // A mount at the name, or a kernel before Linux 5.6.
        guard error == .crossDeviceLink || error == .noFunction else { throw error }
      }
    }
    let path = try handle.descriptor.open(name, [.pathOnly, .noFollow])
    guard try outerAttributes(of: path).identity == expected else { throw .staleFileHandle }
    return try path.reopened(flags.subtracting(.noFollow))
  }

  /// Calls the body with a path to watch an entry.
  /// - Throws: ELOOP for our own mount.
  func withOuterWatchPath<Result>(
    of name: CName, in handle: SharedDescriptor, _ body: (CName, _ follows: Bool) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let path = try handle.descriptor.open(name, [.pathOnly, .noFollow])
    _ = try outerAttributes(of: path)
    return try withCName(path.procPath) { path throws(Errno) in try body(path, true) }
  }
}
