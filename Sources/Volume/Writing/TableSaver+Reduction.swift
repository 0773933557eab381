import Fuse
import Layers
import Posix

/// Tables that were saved are reduced to what differs from the layers below.
extension TableSaver {
  private func reduceAll() {
    isQueued.withLock { $0 = false }
    let now = TimeSpec.monotonic
    let due = tables.withLock { tables -> [Saving] in
      let due = tables.filter { $0.value.next <= now }
      for (name, saving) in due {
        tables[name]?.next = now.advanced(byMilliseconds: saving.pause)
        tables[name]?.pause = min(saving.pause * 2, Self.longestPause)
      }
      return Array(due.values)
    }
    for saving in due { reduce(saving, isAtEnd: false) }
  }

  /// A table that cannot be reduced now is tried again.
  func reduce(_ saving: Saving, isAtEnd: Bool) {
    do throws(Errno) {
      guard let found = try directory(of: saving) else { return end(saving) }
      // It may have been made again in another spelling.
      let (present, directory) = try found.presentSpelling(of: saving.name)
      try withCName(present) { name throws(Errno) in
        guard let status = try directory.savedTable(name) else {
          return try replace(saving, name, in: directory, nil, nil) { false }
        }
        try whileUnwritten(saving, status, isAtEnd) { isBroken throws(Errno) in
          let reduced = try directory.reducedTable(name, saving.base)
          try replace(saving, name, in: directory, status, reduced, isBroken)
        }
      }
    } catch {
      if error == .deferred, !isAtEnd {
        _ = store.stack.runDeferred { [self] in reduce(saving, isAtEnd: false) }
      }
    }
  }

  /// - Returns: nil if it is gone, and the table with it.
  private func directory(of saving: Saving) throws(Errno) -> MergedDirectory? {
    do throws(Errno) { return try store.stack.directory(at: saving.path) } catch {
      if error == .noSuchFileOrDirectory || error == .notDirectory { return nil }
      throw error
    }
  }

  /// Runs the body while no program has the table open for writing.
  /// - Parameter body: is passed a function that says whether one waits for its end.
  private func whileUnwritten(
    _ saving: Saving, _ status: FileStatus, _ isAtEnd: Bool, _ body: (() -> Bool) throws(Errno) -> Void
  ) throws(Errno) {
    if isAtEnd { return try body { false } }
    let file: SharedDescriptor
    do throws(Errno) { file = SharedDescriptor(try leased(saving)) } catch {
      let isIdle = TimeSpec.now.milliseconds(since: status.changed) >= Self.idleTime
      if error != .resourceTemporarilyUnavailable, isIdle { try body { false } }
      return
    }
    try withExtendedLifetime(file) { () throws(Errno) in try body { file.descriptor.isLeaseBroken } }
  }

  /// Opens a table through the mount, and takes a lease on it.
  /// - Throws: EAGAIN if a program has it open for writing.
  private func leased(_ saving: Saving) throws(Errno) -> Descriptor {
    guard let kernel = kernel.withLock({ $0 }) else { throw .resourceTemporarilyUnavailable }
    let path = Array((saving.path + [saving.name]).joined(separator: [UInt8(ascii: "/")]))
    let root = try kernel.openRoot()
    let file = try withCName(path) { path throws(Errno) in
      try root.directory.openBeneath(path, [.read, .nonBlocking, .noControllingTerminal])
    }
    try file.takeReadLease()
    // What programs have written to mappings.
    try file.synchronize(dataOnly: true)
    return file
  }

  /// Calls the upper layer only, since requests wait for the locks.
  /// - Parameters:
  ///   - status: the table as it was before the lease was taken; nil if there was none.
  ///   - reduced: nil if it stays as it is.
  ///   - isBroken: whether a program waits for the end of the lease.
  private func replace(
    _ saving: Saving, _ name: CName, in directory: MergedDirectory, _ status: FileStatus?,
    _ reduced: ReducedTable?, _ isBroken: () -> Bool
  ) throws(Errno) {
    try requests.withLock { _ throws(Errno) in
      try changes.withLock { _ throws(Errno) in
        // Another thread may have done it.
        guard tables.withLock({ $0[saving.record] != nil }) else { return }
        if let present = try directory.savedTable(name), present.identity != saving.base.merged {
          guard let status, present.isUnchanged(since: status), !isBroken() else { return }
          if let reduced { try replace(saving, name, in: directory, status, reduced, isBroken) }
        }
        // Otherwise what was to be done to it has failed.
        directory.endSaving(saving.name)
        end(saving)
      }
    }
  }

  /// - Throws: ESTALE if the table was changed meanwhile.
  private func replace(
    _ saving: Saving, _ name: CName, in directory: MergedDirectory, _ status: FileStatus,
    _ reduced: ReducedTable, _ isBroken: () -> Bool
  ) throws(Errno) {
    let original = try directory.top.openFile(name, identity: status.identity)
    var record = TableRecord(path: saving.path + [saving.name], base: saving.base)
    record.result = reduced.content
    _ = try upper.write(record, as: saving.record)
    let placed = try upper.replaceTable(
      name, in: directory.top, by: reduced.content, like: original, former: status
    ) { _ throws(Errno) in
      if isBroken() { throw .staleFileHandle }
    }
    directory.show(reduced, as: name, placed)
  }

  private func end(_ saving: Saving) {
    upper.removeTableRecord(saving.record)
    _ = tables.withLock { $0.removeValue(forKey: saving.record) }
    guard let parent = store.directory(at: saving.path) else { return }
    store.recordChange(in: [parent])
    queue.add([Invalidation(subject: .name(parent, saving.name, layer: 0), aspects: .entry)])
  }
}

extension FileStatus {
  fileprivate func isUnchanged(since former: FileStatus) -> Bool {
    (identity, size, changed) == (former.identity, former.size, former.changed)
  }
}

extension TableSaver: LayerWatchdog.Loop {
  func check(now: TimeSpec, _ isolate: (Int) -> Void) -> Bool {
    let isAny = tables.withLock { !$0.isEmpty }
    guard isAny,
      isQueued.withLock({ isQueued in
        defer { isQueued = true }
        return !isQueued
      })
    else { return isAny }
    if !worker.add({ [self] in reduceAll() }) { isQueued.withLock { $0 = false } }
    return true
  }
}

extension NodeStore {
  /// The node of a directory, by its path; nil if the kernel does not know it.
  fileprivate func directory(at path: [[UInt8]]) -> NodeID? {
    var node = NodeID.root
    for name in path {
      guard let next = directory(named: name, in: node) else { return nil }
      node = next
    }
    return node
  }
}
