import Fuse
import Glibc
import Layers
import Posix

/// GETATTR and STATFS.
struct AttributeOperations: Sendable {
  let store: NodeStore
  let control: ControlFile
  let commands: ControlCommandRunner
  let resources: ResourceDirectory
  /// nil for a read-only mount, and where events of our own changes cannot be told.
  let pages: PageKeeper?

  func read(of node: NodeID, _ reply: consuming Reply<ReplyKind.Attributes>) {
    if node == ControlFile.node {
      // Now it may be certain that no WRITE continues the last line.
      let caller = control.writer(reply.caller)
      let line = control.reassembler.withLock { $0.takeCompletedFragment(caller) }
      if let line { commands.finish(line) }
      reply.send(control.attributes(for: reply.caller))
      return
    }
    if node == FoldingMarker.node { return reply.send(FoldingMarker.attributes) }
    let attributes: NodeAttributes
    do throws(Errno) {
      attributes =
        ResourceDirectoryNodes.contain(node)
        ? try resources.attributes(of: node)
        : try store.evictingOnDemand { () throws(Errno) in try store.attributes(of: node) }
    } catch {
      let isLost = error == .noSuchFileOrDirectory || error == .staleFileHandle
      if isLost { store.recordRetry(of: node) }
      return reply.fail(isLost ? .staleFileHandle : error)
    }
    pages?.willReply(with: attributes.attributes, of: node)
    reply.send(attributes)
  }

  /// The figures are those of the layer that takes changes, or MAIN's, or those of the lowest layer that answers.
  func statfs(_ reply: consuming Reply<ReplyKind.Statfs>) {
    var figures: Result<statvfs, Errno> = .failure(.deferred)
    for layer in store.isWritable ? store.stack.layers : store.stack.layers.reversed() {
      do throws(Errno) { figures = .success(try layer.statvfs()) } catch { figures = .failure(error) }
      guard case .failure(.deferred) = figures, LayerAccess.current.usesKnownState else { break }
    }
    switch figures {
    case .success(let figures): reply.send(figures)
    case .failure(let error): reply.fail(error)
    }
  }
}
