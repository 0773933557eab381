import Fuse
import Glibc
import Layers
import Posix

/// LOOKUP and FORGET.
struct EntryOperations: Sendable {
  let store: NodeStore
  let control: ControlFile
  let resources: ResourceDirectory
  let writes: WriteOperations
  let reserved: ReservedNames

  func lookUp(_ name: CName, in parent: NodeID, _ reply: consuming Reply<ReplyKind.Entry>) {
    // The kernel passes on longer names than any file has. In the resource directory one may be percent-encoded.
    if strlen(name) > NAME_MAX, !ResourceDirectoryNodes.contain(parent) {
      return reply.fail(.fileNameTooLong)
    }
    if let answer = writes.answer(toLookup: name, in: parent, by: reply.caller) {
      return writes.send(answer, reply)
    }
    if parent == .root, reserved.isControl(name) {
      _ = reply.send(control.entry)
      return
    }
    if ResourceDirectoryNodes.contain(parent) || (parent == .root && reserved.isResources(name)) {
      return resources.lookUp(name, in: parent, reply)
    }
    let entry: EntryReply?
    var isMissing = true
    let caller = reply.caller
    do throws(Errno) {
      entry = try store.evictingOnDemand { () throws(Errno) in
        let merged = try store.merged(of: parent)
        try store.check(.search, in: merged, parent, for: caller)
        let found = try store.lookUp(name, in: parent, merged)
        store.recordLookup(found, name, in: parent)
        isMissing = found == nil
        if found != nil, try isForRespelling(name, in: parent, merged, by: caller) { return nil }
        return try found.map { found throws(Errno) in try store.entry(found, name, in: parent, merged) }
      }
    } catch {
      guard error == .deferred, let known = store.knownDirectory(name, in: parent) else {
        return reply.fail(error)
      }
      if !reply.send(known) { store.forget(known.node, lookups: 1) }
      return
    }
    guard var entry else { return sendNegative(name, in: parent, isMissing: isMissing, reply) }
    if writes.isAnnouncer(reply.caller) { entry.timeout = 0 }
    if store.retried.contains(name, in: parent) { _ = try? store.openFile(of: entry.node) }
    store.recordFoundSpelling(name, in: parent)
    writes.writer?.pages?.willReply(with: entry.attributes.attributes, of: entry.node)
    if !reply.send(entry) { store.forget(entry.node, lookups: 1) }
  }

  /// - Parameter isMissing: whether no layer has the name; otherwise the kernel is to ask for it again.
  private func sendNegative(
    _ name: CName, in parent: NodeID, isMissing: Bool, _ reply: consuming Reply<ReplyKind.Entry>
  ) {
    let timeout = store.negativeTimeout(of: name, in: parent)
    if isMissing, reserved.isFoldingMarker(name) {
      _ = reply.send(FoldingMarker.entry(timeout: timeout))
      return
    }
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
