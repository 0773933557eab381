import Fuse
import Layers
import Posix

/// LOOKUP and FORGET.
final class EntryOperations: Sendable {
  private let store: NodeStore
  private let control: ControlFile
  private let resources: ResourceDirectory
  private let changes: ChangeOperations
  private let reserved: ReservedNames

  init(
    _ store: NodeStore, _ control: ControlFile, _ resources: ResourceDirectory, _ changes: ChangeOperations,
    _ reserved: ReservedNames
  ) {
    self.store = store
    self.control = control
    self.resources = resources
    self.changes = changes
    self.reserved = reserved
  }

  func lookUp(_ name: CName, in parent: NodeID, _ reply: consuming Reply<ReplyKind.Entry>) {
    if let answer = changes.answer(toLookup: name, in: parent, by: reply.caller) {
      return changes.send(answer, reply)
    }
    if parent == .root, reserved.isControl(name) {
      _ = reply.send(control.entry)
      return
    }
    if ResourceDirectoryNodes.contain(parent) || (parent == .root && reserved.isResources(name)) {
      return resources.lookUp(name, in: parent, reply)
    }
    let entry: EntryReply?
    do throws(Errno) {
      let merged = try store.merged(of: parent)
      entry = try merged.lookup(name).map { found throws(Errno) in
        try store.entry(found, name, in: parent, merged)
      }
    } catch {
      reply.fail(error)
      return
    }
    guard let entry else { return sendNegative(in: parent, reply) }
    if !reply.send(entry) { store.forget(entry.node, lookups: 1) }
  }

  private func sendNegative(in parent: NodeID, _ reply: consuming Reply<ReplyKind.Entry>) {
    let timeout = store.timeout(in: parent)
    if timeout > 0 { reply.sendNegative(timeout: timeout) } else { reply.fail(.noSuchFileOrDirectory) }
  }

  func forget(_ node: NodeID, lookups: UInt64) {
    if ResourceDirectoryNodes.contain(node) {
      resources.forget(node, lookups: lookups)
    } else {
      store.forget(node, lookups: lookups)
    }
  }
}
