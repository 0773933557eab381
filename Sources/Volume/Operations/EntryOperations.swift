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
    let found: (entry: EntryReply?, isMissing: Bool)
    do throws(Errno) { found = try visibleEntry(name, in: parent, for: reply.caller) } catch {
      guard error == .deferred, let known = store.knownDirectory(name, in: parent) else {
        return reply.fail(error)
      }
      if !reply.send(known) { store.forget(known.node, lookups: 1) }
      return
    }
    guard var entry = found.entry else {
      return sendNegative(name, in: parent, isMissing: found.isMissing, reply)
    }
    if writes.isAnnouncer(reply.caller) { entry.timeout = 0 }
    store.recordFoundSpelling(name, in: parent)
    writes.writer?.pages?.willReply(with: entry.attributes.attributes, of: entry.node)
    writes.writer?.tables?.didLookUp(name, in: parent, entry.attributes.attributes)
    if !reply.send(entry) { store.forget(entry.node, lookups: 1) }
  }

  /// How often a name is looked up that the kernel does not look up again.
  private static let mostAttempts = 100

  /// What a name stands for, and whether no layer has it. In a retry the file is opened: the next request fails for good if
  /// its name has gone again by then.
  private func visibleEntry(
    _ name: CName, in parent: NodeID, for caller: Caller
  ) throws(Errno) -> (entry: EntryReply?, isMissing: Bool) {
    for _ in 1..<Self.mostAttempts {
      let found = try entry(name, in: parent, for: caller)
      guard let entry = found.entry, store.retried.contains(name, in: parent) else { return found }
      do throws(Errno) {
        _ = try store.openFile(of: entry.node)
        return found
      } catch {
        // The request after this one meets other faults.
        guard error == .staleFileHandle || error == .noSuchFileOrDirectory else { return found }
        store.forget(entry.node, lookups: 1)
      }
    }
    return try entry(name, in: parent, for: caller)
  }

  private func entry(
    _ name: CName, in parent: NodeID, for caller: Caller
  ) throws(Errno) -> (entry: EntryReply?, isMissing: Bool) {
    var isMissing = true
    let entry = try store.evictingOnDemand { () throws(Errno) -> EntryReply? in
      let merged = try store.merged(of: parent)
      try store.check(.search, in: merged, parent, for: caller)
      let found = try store.lookUp(name, in: parent, merged)
      store.recordLookup(found, name, in: parent)
      isMissing = found == nil
      if found != nil, try isForRespelling(name, in: parent, merged, by: caller) { return nil }
      return try found.map { found throws(Errno) in try store.entry(found, name, in: parent, merged) }
    }
    return (entry, isMissing)
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
