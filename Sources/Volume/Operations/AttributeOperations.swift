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
  private let lastFigures = Locked<statvfs?>(nil)

  init(
    store: NodeStore, control: ControlFile, commands: ControlCommandRunner, resources: ResourceDirectory
  ) {
    self.store = store
    self.control = control
    self.commands = commands
    self.resources = resources
  }

  func read(of node: NodeID, _ reply: consuming Reply<ReplyKind.Attributes>) {
    if node == ControlFile.node {
      // Now it may be certain that no WRITE continues the last line.
      let caller = control.writer(reply.caller)
      let write = control.reassembler.withLock { $0.takeCompletedLine(caller) }
      if let write { commands.finish(write) }
      reply.send(control.attributes(for: reply.caller))
      return
    }
    let attributes: NodeAttributes
    do throws(Errno) {
      attributes =
        ResourceDirectoryNodes.contain(node)
        ? try resources.attributes(of: node) : try store.attributes(of: node)
    } catch {
      return reply.fail(error == .noSuchFileOrDirectory ? .staleFileHandle : error)
    }
    reply.send(attributes)
  }

  /// The figures are MAIN's.
  func statfs(_ reply: consuming Reply<ReplyKind.Statfs>) {
    let figures: statvfs
    do throws(Errno) { figures = try store.stack.layers[store.stack.layers.count - 1].statvfs() } catch {
      guard error == .deferred, LayerAccess.current.usesKnownState, let last = lastFigures.withLock({ $0 })
      else { return reply.fail(error) }
      return reply.send(last)
    }
    lastFigures.withLock { $0 = figures }
    reply.send(figures)
  }
}
