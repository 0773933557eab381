import Fuse
import Layers
import Posix

/// Setting the flags of chattr(1).
extension FileWriter {
  /// Sets the flags of the upper layer's file or directory, which is a copy from then on. A copy has no flags: so those that
  /// the caller changes are changed, and "immutable" and "append only" are as the caller wants them.
  /// - Parameter shown: the present value, as the caller has read it.
  func setFlags(
    _ request: FileFlagsRequest, of node: NodeID, _ value: [UInt8], shown: [UInt8],
    by credentials: Credentials
  ) throws(Errno) {
    let (wanted, former) = (FileFlagsRequest.flags(in: value), FileFlagsRequest.flags(in: shown))
    let caller = credentials.caller
    let isPrivileged = caller.hasCapability(.changeProtection)
    // The kernel has compared them with what was shown, which may be another layer's.
    if (wanted | former) & request.protection != 0, !isPrivileged { throw .notPermitted }
    try changingFlags(of: node, by: EntryOwner(credentials)) { entry throws(Errno) in
      try store.checkOwner(of: entry, by: caller)
      try entry.withDescriptor { descriptor throws(Errno) in
        let file = try descriptor.reopened([.read, .nonBlocking])
        let present = FileFlagsRequest.flags(in: try request.read(file))
        if present & request.protection != 0, !isPrivileged { throw .notPermitted }
        let changed = (wanted ^ former) | request.protection
        do throws(Errno) {
          try request.set(value, flags: present & ~changed | wanted & changed, of: file)
        } catch {
          // The copy must not lose what protects it.
          let kept = former & request.protection & ~present
          if kept != 0 { try? request.set(value, flags: present | kept, of: file) }
          throw error
        }
      }
    }
    // Its change time.
    store.recordAttributeChange(of: node)
    try? kernel.withLock { $0 }?.invalidateAttributes(of: node)
  }

  private func changingFlags(
    of node: NodeID, by writer: EntryOwner, _ body: (any ChangeableEntry) throws(Errno) -> Void
  ) throws(Errno) {
    if try store.isDirectory(node) {
      return try changeDirectory(node, copyUp.directory(node, for: .flags), body)
    }
    try copyUp.file(node, by: writer, for: .flags)
    // It was opened by other flags.
    descriptors.close(node)
    try store.withUpperFile(of: node) { file throws(Errno) in
      _ = try changing(node, file) { file throws(Errno) in try body(file) }
    }
  }
}
