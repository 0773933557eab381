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

  func read(of node: NodeID, _ reply: consuming Reply<ReplyKind.Attributes>) {
    if node == ControlFile.node {
      // Now it may be certain that no WRITE continues the last line.
      if let write = control.takeComplete(reply.caller) { commands.finish(write) }
      reply.send(control.attributes(for: reply.caller))
      return
    }
    let attributes: NodeAttributes
    do throws(Errno) {
      attributes =
        ResourceDirectoryNodes.contain(node)
        ? try resources.attributes(of: node) : try store.attributes(of: node)
    } catch {
      reply.fail(error == .noSuchFileOrDirectory ? .staleFileHandle : error)
      return
    }
    reply.send(attributes)
  }

  /// The figures are MAIN's.
  func statfs(_ reply: consuming Reply<ReplyKind.Statfs>) {
    let figures: statvfs
    do throws(Errno) { figures = try store.stack.layers[store.stack.layers.count - 1].statvfs() } catch {
      reply.fail(error)
      return
    }
    reply.send(figures)
  }
}
