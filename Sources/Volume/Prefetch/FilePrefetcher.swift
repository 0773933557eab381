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
/// then prefetches several files too, since the program's processor is idle meanwhile, and the worker continues beyond
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
  /// The most files that a READ prefetches in a stream and near it, and their bytes.
  static let (share, shareNearby, shareBytes) = (16, 4, 128 << 10)
  /// How long a READ may prefetch before it takes another file, in nanoseconds, unless other threads took its processor.
  private static let shareTime: UInt64 = 1_000_000

  let store: NodeStore
  let kernel: Locked<(any KernelNotifier)?>
  /// Storing pages may wait for READs that request workers are replying to.
  let worker = SerialWorker(name: "file-prefetch")
  let processors = ProcessorSplit()
  let stored = Counter()
  /// The jobs that were added, which the worker watches without taking its queue's lock.
  private let jobs = Counter()
  /// Closed while the worker stores content.
  private let isIdle = Latch(isOpen: true)
  /// Closed while a thread that answers a READ does.
  private let isShareStored = Latch(isOpen: true)
  /// Both are locked inside the node table's lock.
  private let detector = Locked(SequentialDetector())
  private let streams = Locked(order: 70, ReadStreams())

  private enum Job {
    case directory(NodeID)
    case streams([PrefetchedFile])
  }

  /// Records that a program read the beginning of a file.
  /// - Parameter isFirst: whether the file had not been open.
  func recordRead(of node: NodeID, isFirst: Bool) {
    guard store.watcher != nil else { return }
    let (share, job) = store.table.withLock { table -> ([PrefetchedFile], Job?) in
      guard let slot = try? table.slot(of: node), let state = table[table[slot].parent].directory,
        state.isCovered
      else { return ([], nil) }
      if streams.withLock({ $0.record(slot, in: table) }) {
        let share = takeShare(of: slot, table) { streams, mayTake in
          streams.takeShare(Self.share, bytes: UInt64(Self.shareBytes), in: table, where: mayTake)
        }
        return (share, streams.withLock(\.isRunning) ? nil : takeFromStreams(table).map { .streams($0) })
      }
      guard isFirst, let size = table[slot].reportedSize, size <= Self.largestFile,
        begins(in: table.number(of: table[slot].parent), state, with: slot)
      else { return ([], nil) }
      return readAhead(of: slot, state, table)
    }
    if let job { start(job) }
    prefetch(share: share)
  }

  private func start(_ job: Job) {
    let (program, processor) = (RequestThread.current.activity.caller, Thread.currentProcessor)
    jobs.add(1)
    let count = jobs.count
    _ = worker.add { [self] in
      withUnsafeTemporaryAllocation(byteCount: PrefetchBatch.bytes, alignment: 16) { buffer in
        processors.begin(beside: program, or: processor)
        var binding = ProcessorBinding()
        binding.avoid(processors.answering)
        switch job {
        case .directory(let directory):
          while let files = nextFiles(in: directory) { prefetch(files, buffer) }
          if isSequential { _ = processors.spin { jobs.count != count } }
        case .streams(let files): prefetchStreams(files, buffer)
        }
        binding.avoid(nil)
        processors.end()
      }
    }
  }

  /// Whether the programs of late have read directories through.
  private var isSequential: Bool { detector.withLock(\.isSequential) }

  private func prefetchStreams(_ first: [PrefetchedFile], _ buffer: UnsafeMutableRawBufferPointer) {
    var files = Optional(first)
    while let taken = files {
      prefetch(taken, buffer) { streams.withLock(\.isOutdated) }
      files = store.table.withLock { takeFromStreams($0) }
    }
  }

  /// Records the first READ of a file in its directory.
  /// - Returns: whether the files near it are to be prefetched.
  private func begins(in directory: NodeID, _ state: DirectoryState, with slot: UInt32) -> Bool {
    state.lastRead = slot
    if state.firstReads > 0 {
      detector.withLock { $0.recordFurtherRead(directory) }
      state.firstReads = min(state.firstReads + 1, 16)
    } else {
      state.firstReads = detector.withLock({ $0.begin(directory) }) ? Self.sequentialStart : 1
    }
    return state.firstReads >= 2
  }

  /// What the thread that answers a READ prefetches near it, and the worker's job.
  private func readAhead(of slot: UInt32, _ state: DirectoryState, _ table: NodeTable) -> (
    [PrefetchedFile], Job?
  ) {
    let count = min(Self.maxFiles, 1 << (state.firstReads - 1))
    let share = takeShare(of: slot, table) { streams, mayTake in
      streams.takeShare(
        near: slot, min(count, Self.shareNearby), bytes: UInt64(Self.shareBytes), in: table, where: mayTake)
    }
    state.filesAhead = count - share.count
    if state.isPrefetching || state.filesAhead == 0 && !isSequential { return (share, nil) }
    state.isPrefetching = true
    return (share, .directory(table.number(of: table[slot].parent)))
  }

  /// The files near the last READ of a directory that the worker prefetches next; nil if there are none.
  private func nextFiles(in directory: NodeID) -> [PrefetchedFile]? {
    store.table.withLock { table in
      guard let slot = try? table.slot(of: directory), let state = table[slot].directory else {
        streams.withLock { $0.finishNearby() }
        return nil
      }
      // The slot may belong to another file by now.
      if table[state.lastRead].parent != slot { state.filesAhead = 0 }
      let count = min(PrefetchBatch.size, state.filesAhead)
      let files = streams.withLock { $0.takeNearby(state.lastRead, count, in: table) }
      state.filesAhead -= files.count
      state.isPrefetching = !files.isEmpty
      return files.isEmpty ? nil : files.compactMap { PrefetchedFile($0, table) }
    }
  }

  private func takeFromStreams(_ table: NodeTable) -> [PrefetchedFile]? {
    streams.withLock { $0.next(PrefetchBatch.size, in: table) }?.compactMap { PrefetchedFile($0, table) }
  }

  // MARK: - What a READ prefetches

  /// The files that a READ prefetches. They are on the file system, or in the archive, of the file that is read, and their
  /// directories are open: another layer might not answer, and the READ would wait for what it does not need.
  /// - Parameter take: takes files for which a predicate holds.
  /// - Returns: none on threads that answer what others have put off, and while another READ prefetches.
  private func takeShare(
    of slot: UInt32, _ table: NodeTable, by take: (inout ReadStreams, (UInt32) -> Bool) -> [UInt32]
  ) -> [PrefetchedFile] {
    guard LayerAccess.current == .shared, RequestThread.request != 0 else { return [] }
    let device = table[slot].identity.device
    let files = streams.withLock { streams in
      take(&streams) { next in
        let layer = Int(table[next].layer)
        return table[next].identity.device == device && !store.stack[layer].gate.isIsolated
          && table[table[next].parent].directory?.openPart(of: layer) != nil
      }
    }
    let share = files.compactMap { PrefetchedFile($0, table) }
    if share.isEmpty, !files.isEmpty { streams.withLock { $0.finishShare() } }
    return share
  }

  /// Prefetches files; the READ is answered afterwards. Where a file takes long, as from a disk, the others are left out.
  ///
  /// No other thread notifies the kernel while it owes a reply. Storing pages waits while another program's READ of the
  /// same file is in flight, and that READ never waits for this one:
  /// - this thread holds no lock, and stores no page of the file that it owes;
  /// - a worker that answers another READ stores nothing meanwhile (`ReadStreams.takeShare`), so it waits for no page, and
  ///   workers are added while all are busy (`SupervisedWorkers`);
  /// - threads that wait for pages answer no READ, other than `size-check`, which leaves the waiting to `attr-refresh` and
  ///   gives up after milliseconds;
  /// - if the kernel has queued the other READ, it sends it as soon as one of those in flight is answered. With the
  ///   default of 12 (`max_background`) those include others than this one; an administrator must not set it to 1.
  private func prefetch(share: [PrefetchedFile]) {
    if share.isEmpty { return }
    var (rest, isSlow) = (share[...], false)
    defer { streams.withLock { $0.finishShare(leaving: rest.map(\.node), wasSlow: isSlow) } }
    guard let kernel = kernel.withLock({ $0 }) else { return }
    withUnsafeTemporaryAllocation(byteCount: Self.shareBytes, alignment: 16) { buffer in
      var batch = PrefetchBatch(store, buffer)
      let (start, preemptions) = (TimeSpec.monotonicNanoseconds, Thread.preemptions)
      while !isSlow, let file = rest.popFirst() {
        batch.read(file)
        isSlow =
          TimeSpec.monotonicNanoseconds - start > Self.shareTime && Thread.preemptions == preemptions
      }
      // A file that is put off is left out; the READ is not.
      LayerAccess.clearDeferral()
      batch.keep()
      stored.add(RequestThread.withNotifications { batch.store(by: kernel, isShareStored) })
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
