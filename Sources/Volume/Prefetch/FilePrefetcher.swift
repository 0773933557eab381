import Fuse
import Layers
import Posix

/// Readahead across files: when a program reads the small files of a directory one after the other, the next ones
/// are stored in the kernel's page cache (FUSE_NOTIFY_STORE) before it asks, and reading them costs no message.
///
/// The window doubles with each file that was read by itself. After several directories that were read through,
/// the window of the next one opens with the first file (`SequentialDetector`).
///
/// Coherence: a change that is reported while a file is read increments its directory's version, and is invalidated
/// here; a later one is invalidated as always.
struct FilePrefetcher: Sendable {
  static let largestFile: UInt64 = 64 << 10
  /// The window's exponent at the first file where a sequential reader is expected.
  private static let sequentialStart = 5
  private static let maxFiles = 64

  let store: NodeStore
  let kernel: Locked<(any KernelNotifier)?>
  /// Storing pages may wait for READs that request workers are replying to.
  let worker = SerialWorker(name: "file-prefetch")
  let stored = Counter()
  /// Locked inside the node table's lock.
  private let detector = Locked(SequentialDetector())

  /// Records that a program read a file that had not been open.
  func recordRead(of node: NodeID) {
    guard store.watcher != nil else { return }
    let directory = store.table.withLock { table -> NodeID? in
      guard let slot = try? table.slot(of: node), let size = table[slot].reportedSize,
        size <= Self.largestFile, let state = table[table[slot].parent].directory, state.isCovered
      else { return nil }
      let directory = table.number(of: table[slot].parent)
      state.lastRead = slot
      if state.firstReads > 0 {
        detector.withLock { $0.recordFurtherRead(directory) }
        state.firstReads = min(state.firstReads + 1, 16)
      } else {
        state.firstReads = detector.withLock({ $0.begin(directory) }) ? Self.sequentialStart : 1
      }
      guard state.firstReads >= 2, !state.isPrefetching else { return nil }
      state.isPrefetching = true
      return directory
    }
    guard let directory else { return }
    _ = worker.add { [self] in
      while let files = nextFiles(in: directory) { prefetch(files, in: directory) }
    }
  }

  /// The files to prefetch; nil when no further file was read since the last call.
  private func nextFiles(in directory: NodeID) -> [NodeID]? {
    store.table.withLock { table in
      guard let slot = try? table.slot(of: directory), let state = table[slot].directory else { return nil }
      let last = state.lastRead
      state.lastRead = 0
      guard last != 0, table[last].parent == slot else {
        state.isPrefetching = false
        return nil
      }
      let count = min(Self.maxFiles, 1 << (state.firstReads - 1))
      return table.unreadFiles(near: last, count: count, largest: Self.largestFile)
        .map { table.number(of: $0) }
    }
  }

  private func prefetch(_ files: [NodeID], in directory: NodeID) {
    guard let kernel = kernel.withLock({ $0 }) else { return }
    withUnsafeTemporaryAllocation(byteCount: Int(Self.largestFile), alignment: 16) { buffer in
      for file in files {
        let version = store.version(of: directory)
        guard let content = try? content(of: file, buffer), !content.isEmpty else { continue }
        guard (try? kernel.store(UnsafeRawBufferPointer(content), in: file)) != nil else { continue }
        stored.add(1)
        if !store.isUnchanged(directory, since: version) { try? kernel.invalidateContent(of: file) }
      }
    }
  }

  /// A small file's whole content; the node is pinned to the file.
  /// - Returns: nil if another reader has it open already, or if the kernel may keep another size of it.
  private func content(
    of node: NodeID, _ buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> UnsafeMutableRawBufferPointer? {
    let (opened, identity) = try store.openByName(node)
    let size = try opened.lastSeenSize()
    // The directory's watch does not report what happens to a file by another hard link.
    guard opened.hadSingleLink, size <= buffer.count else { return nil }
    let isWanted = try store.table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      return table[slot].reportedSize == size && table[slot].isUnread && !table[slot].isSizeDoubtful
    }
    // What could be decoded only after much else is not worth it.
    guard isWanted, try opened.readNonBlocking(into: buffer, at: 0) == Int(size),
      let kept = try store.keep(opened, of: identity, for: node), kept === opened
    else { return nil }
    return UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(size)])
  }
}
