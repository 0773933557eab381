import Fuse
import Layers
import Posix

/// IOCTL: the flags of chattr(1), which the kernel does not cache.
struct FlagOperations: Sendable {
  let store: NodeStore
  /// nil for a read-only mount.
  let writer: Writer?

  func run(
    _ request: FileFlagsRequest, of node: NodeID, _ input: UnsafeRawBufferPointer,
    _ reply: consuming Reply<ReplyKind.Ioctl>
  ) {
    let value: [UInt8]
    do throws(Errno) {
      if node.isReserved { throw .inappropriateIOCTLForDevice }
      let credentials = reply.credentials
      let shown = try store.evictingOnDemand { () throws(Errno) in try read(request, node, credentials.caller)
      }
      if request.isChange {
        guard let writer else { throw .readOnlyFileSystem }
        if input.count < request.size { throw .invalidArgument }
        try writer.files.setFlags(
          request, of: node, Array(input.prefix(request.size)), shown: shown, by: credentials)
      }
      value = request.isChange ? [] : shown
    } catch {
      return reply.fail(error)
    }
    reply.send(value)
  }

  /// - Throws: ENOTTY in an archive, and where the file system has no flags.
  private func read(
    _ request: FileFlagsRequest, _ node: NodeID, _ caller: Caller
  ) throws(Errno) -> [UInt8] {
    do throws(Errno) {
      if try store.isDirectory(node) {
        let merged = try store.merged(of: node)
        try store.check(.read, in: merged, node, for: caller)
        return try read(request, merged.attributeSource)
      }
      if let file = try store.presentFile(of: node) { return try read(request, file) }
      return try read(request, try store.openByName(node).0)
    } catch {
      let isArchive = error == .notSupported || error == .readOnlyFileSystem
      throw isArchive ? .inappropriateIOCTLForDevice : error
    }
  }

  private func read(
    _ request: FileFlagsRequest, _ entry: some ChangeableEntry
  ) throws(Errno) -> [UInt8] {
    try entry.withDescriptor { descriptor throws(Errno) in
      try request.read(try descriptor.reopened([.read, .nonBlocking]))
    }
  }
}
