import Fuse
import Layers
import Posix

/// Readahead across files: when a program reads small files one after the other, the next ones are stored in the
/// kernel's page cache (FUSE_NOTIFY_STORE) before it asks, and reading them costs no message.
///
/// A program that reads one directory after the other in the order of its listings is followed across directories
/// (`ReadStreams`). For others the window is within the directory, and doubles with each file that was read by itself;
/// after several directories that were read through, it opens with the first file (`SequentialDetector`).
///
/// Coherence: a change that is reported while a file is read increments its directory's version, and the file is not
/// stored; one that is reported while it is stored is invalidated here, and barriers wait for that (`isIdle`); a later one
/// is invalidated as always.
struct FilePrefetcher: Sendable {
  static let largestFile: UInt64 = 128 << 10
  /// The window's exponent at the first file where a sequential reader is expected.
  private static let sequentialStart = 3
  private static let maxFiles = 64

  let store: NodeStore
  let kernel: Locked<(any KernelNotifier)?>
  /// Storing pages may wait for READs that request workers are replying to.
  let worker = SerialWorker(name: "file-prefetch")
  let stored = Counter()
  /// Closed while content is stored.
  let isIdle = Latch(isOpen: true)
  /// Both are locked inside the node table's lock.
  private let detector = Locked(SequentialDetector())
  private let streams = Locked(ReadStreams())

  private enum Job {
    case directory(NodeID)
    case stream
  }

  /// Records that a program read the beginning of a file.
  /// - Parameter isFirst: whether the file had not been open.
  func recordRead(of node: NodeID, isFirst: Bool) {
    guard store.watcher != nil else { return }
    let job = store.table.withLock { table -> Job? in
      guard let slot = try? table.slot(of: node), let state = table[table[slot].parent].directory,
        state.isCovered
      else { return nil }
      let (isStream, isIdle) = streams.withLock { $0.record(slot, in: table) }
      if isStream { return isIdle ? .stream : nil }
      guard isFirst, let size = table[slot].reportedSize, size <= Self.largestFile else { return nil }
      let directory = table.number(of: table[slot].parent)
      return begins(in: directory, state, with: slot) ? .directory(directory) : nil
    }
    guard let job else { return }
    _ = worker.add { [self] in
      withUnsafeTemporaryAllocation(byteCount: PrefetchBatch.bytes, alignment: 16) { buffer in
        switch job {
        case .directory(let directory):
          while let files = nextFiles(in: directory) { prefetch(files, buffer) }
        case .stream:
          while let files = nextInStreams() {
            prefetch(files, buffer) { streams.withLock { $0.hasMoved } }
          }
        }
      }
    }
  }

  /// Records the first READ of a file in its directory.
  /// - Returns: whether a worker must begin to prefetch the directory.
  private func begins(in directory: NodeID, _ state: DirectoryState, with slot: UInt32) -> Bool {
    state.lastRead = slot
    if state.firstReads > 0 {
      detector.withLock { $0.recordFurtherRead(directory) }
      state.firstReads = min(state.firstReads + 1, 16)
    } else {
      state.firstReads = detector.withLock({ $0.begin(directory) }) ? Self.sequentialStart : 1
    }
    guard state.firstReads >= 2, !state.isPrefetching else { return false }
    state.isPrefetching = true
    return true
  }

  /// The files to prefetch; nil when no further file was read since the last call.
  private func nextFiles(in directory: NodeID) -> [PrefetchedFile]? {
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
        .compactMap { PrefetchedFile($0, table) }
    }
  }

  private func nextInStreams() -> [PrefetchedFile]? {
    store.table.withLock { table in
      streams.withLock { $0.next(PrefetchBatch.size, largest: Self.largestFile, in: table) }?
        .compactMap { PrefetchedFile($0, table) }
    }
  }

  /// - Parameter isOutdated: whether other files are to be prefetched by now.
  private func prefetch(
    _ files: [PrefetchedFile], _ buffer: UnsafeMutableRawBufferPointer, _ isOutdated: () -> Bool = { false }
  ) {
    guard let kernel = kernel.withLock({ $0 }) else { return }
    var rest = files[...]
    while !rest.isEmpty, !isOutdated() {
      var batch = PrefetchBatch(store, buffer)
      while let file = rest.first, batch.hasRoom(for: file), !isOutdated() {
        rest.removeFirst()
        batch.read(file)
      }
      batch.keep()
      stored.add(batch.store(by: kernel, isIdle))
    }
  }
}
