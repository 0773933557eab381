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
/// A program reads a prefetched file faster than one is prefetched, so it catches up. The thread that answers its READ
/// then prefetches several files too, since the program's processor is idle meanwhile, and the worker goes on beyond
/// them on the other processor (`ProcessorSplit`).
///
/// Coherence: a change that is reported while a file is read increments its directory's version, and the file is not
/// stored; one that is reported while it is stored is invalidated here, and barriers wait for that (`whenStored`); a
/// later one is invalidated as always.
struct FilePrefetcher: Sendable {
  static let largestFile: UInt64 = 128 << 10
  /// The window's exponent at the first file where a sequential reader is expected.
  private static let sequentialStart = 3
  private static let maxFiles = 64
  /// The most files that a READ of a stream prefetches, and their bytes.
  static let (share, shareBytes) = (16, 128 << 10)

  let store: NodeStore
  let kernel: Locked<(any KernelNotifier)?>
  /// Storing pages may wait for READs that request workers are replying to.
  let worker = SerialWorker(name: "file-prefetch")
  let processors = ProcessorSplit()
  let stored = Counter()
  /// Closed while the worker stores content.
  private let isIdle = Latch(isOpen: true)
  /// Closed while a thread that answers a READ does.
  private let isShareStored = Latch(isOpen: true)
  /// Both are locked inside the node table's lock.
  private let detector = Locked(SequentialDetector())
  private let streams = Locked(ReadStreams())

  private enum Job {
    case directory(NodeID)
    case streams([PrefetchedFile])
  }

  /// Records that a program read the beginning of a file.
  /// - Parameter isFirst: whether the file had not been open.
  func recordRead(of node: NodeID, isFirst: Bool) {
    guard store.watcher != nil else { return }
    var share: [PrefetchedFile]?
    let job = store.table.withLock { table -> Job? in
      guard let slot = try? table.slot(of: node), let state = table[table[slot].parent].directory,
        state.isCovered
      else { return nil }
      if streams.withLock({ $0.record(slot, in: table) }) {
        share = takeShare(of: slot, table)
        return streams.withLock(\.isRunning) ? nil : takeFromStreams(table).map { .streams($0) }
      }
      guard isFirst, let size = table[slot].reportedSize, size <= Self.largestFile else { return nil }
      let directory = table.number(of: table[slot].parent)
      return begins(in: directory, state, with: slot) ? .directory(directory) : nil
    }
    if let job { start(job) }
    if let share { prefetch(share: share) }
  }

  private func start(_ job: Job) {
    let (program, processor) = (RequestThread.current.activity.caller, Thread.currentProcessor)
    _ = worker.add { [self] in
      withUnsafeTemporaryAllocation(byteCount: PrefetchBatch.bytes, alignment: 16) { buffer in
        switch job {
        case .directory(let directory):
          while let files = nextFiles(in: directory) { prefetch(files, buffer) }
        case .streams(let files):
          processors.begin(beside: program, or: processor)
          prefetchStreams(files, buffer)
          processors.end()
        }
      }
    }
  }

  private func prefetchStreams(_ first: [PrefetchedFile], _ buffer: UnsafeMutableRawBufferPointer) {
    var (binding, files) = (ProcessorBinding(), Optional(first))
    binding.avoid(processors.answering)
    while let taken = files {
      prefetch(taken, buffer) { streams.withLock(\.isOutdated) }
      files = store.table.withLock { takeFromStreams($0) }
    }
    binding.avoid(nil)
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

  private func takeFromStreams(_ table: NodeTable) -> [PrefetchedFile]? {
    streams.withLock { $0.next(PrefetchBatch.size, in: table) }?.compactMap { PrefetchedFile($0, table) }
  }

  // MARK: - What a READ prefetches

  /// The files that a READ prefetches. They are on the file system, or in the archive, of the file that is read: another
  /// one might not answer, and the READ would wait for what it does not need.
  /// - Returns: nil on threads that answer what others have put off, and while another READ prefetches: a thread that
  ///   stores pages may wait for READs that others answer, and must not be waited for by them.
  private func takeShare(of slot: UInt32, _ table: NodeTable) -> [PrefetchedFile]? {
    guard LayerAccess.current == .shared, RequestThread.request != 0 else { return nil }
    let files = streams.withLock { streams in
      streams.takeShare(Self.share, bytes: UInt64(Self.shareBytes), in: table) { next in
        table[next].identity.device == table[slot].identity.device
          && !store.stack[Int(table[next].layer)].gate.isIsolated
      }
    }
    return files.isEmpty ? nil : files.compactMap { PrefetchedFile($0, table) }
  }

  /// Prefetches files; the READ is answered afterwards.
  private func prefetch(share: [PrefetchedFile]) {
    defer { streams.withLock { $0.finishShare() } }
    guard let kernel = kernel.withLock({ $0 }) else { return }
    withUnsafeTemporaryAllocation(byteCount: Self.shareBytes, alignment: 16) { buffer in
      var batch = PrefetchBatch(store, buffer)
      for file in share { batch.read(file) }
      // A file that is put off is left out; the READ is not.
      LayerAccess.clearDeferral()
      batch.keep()
      stored.add(batch.store(by: kernel, isShareStored))
    }
  }

  // MARK: - Storing

  /// Calls a function once all content has been stored that is being stored now.
  @Sendable
  func whenStored(_ body: @escaping @Sendable () -> Void) {
    isIdle.whenOpen { isShareStored.whenOpen(body) }
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
      stored.add(batch.store(by: kernel, isIdle) { node in streams.withLock { $0.isBeingRead(node) } })
    }
  }
}
