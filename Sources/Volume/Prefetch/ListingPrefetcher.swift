import Fuse
import Layers
import Posix

/// Lists directories before they are asked for, on a thread of its own: a program that walks a tree finds the next
/// listings ready. Reading a directory in the layers takes longer than the program takes to go through its entries.
///
/// With two processors the thread takes one, and the threads that answer stay on the other (`ProcessorSplit`).
struct ListingPrefetcher: Sendable {
  /// Directories with more names are not prefetched: a program seldom gets beyond them soon.
  private static let maxNames = 1024
  /// The most names that are looked up: as many as a page of 32 KiB has, which glibc asks for.
  private static let maxEntries = 192

  let store: NodeStore
  let processors = ProcessorSplit()
  private let queue = ListingPrefetchQueue()
  let worker = SerialWorker(name: "list-prefetch")
  let hits = Counter()

  func clear() {
    for job in queue.clear() { discard(job) }
  }

  /// Ends the thread. Requests must still be answered meanwhile.
  func stop() {
    queue.close()
    worker.stop()
  }

  /// Records that a page of a directory was listed.
  /// - Parameter directories: those that the page had, except those that were prefetched.
  func recordListing(_ directories: [NodeID], in parent: NodeID, isFirst: Bool) {
    // With one processor it would only delay the program.
    guard store.watcher != nil, processorCount > 1, isFirst || !directories.isEmpty else { return }
    let addition = queue.add(directories, in: parent, isBegin: isFirst)
    if let evicted = addition.evicted { discard(evicted) }
    guard addition.starts else { return }
    let (program, processor) = (RequestThread.current.activity.caller, Thread.currentProcessor)
    _ = worker.add { [self] in
      processors.begin(beside: program, or: processor)
      run()
      processors.end()
    }
  }

  /// A directory's valid prefetched listing. The caller has to deliver or forget the lookup of each entry.
  func takeListing(of directory: NodeID) -> PreparedListing? {
    guard let job = queue.job(of: directory) else { return nil }
    guard let prepared = job.prepared, store.isUnchanged(directory, since: prepared.snapshot.version) else {
      discard(job)
      return nil
    }
    hits.add(1)
    return prepared
  }

  // MARK: - The prefetcher's thread

  private func run() {
    var binding = ProcessorBinding()
    binding.avoid(processors.answering)
    repeat {
      while let job = queue.take() { prepare(job) }
    } while (queue.isFollowed && waitForListing()) || !queue.end()
    binding.avoid(nil)
  }

  /// Waits for the next listing that a program asks for.
  private func waitForListing() -> Bool {
    let listings = queue.listings.count
    return processors.spin { queue.listings.count != listings }
  }

  private func prepare(_ job: ListingPrefetchQueue.Job) {
    guard let (merged, version) = prefetchable(job.directory) else { return queue.skip() }
    guard let listing = try? store.list(merged, job.directory, atMost: Self.maxNames) else { return }
    let snapshot = ListingSnapshot(listing, store.cookies, version: version)
    var (job, prepared) = (job, PreparedListing(snapshot: snapshot))
    var directories: [NodeID] = []
    for position in snapshot.order.prefix(Self.maxEntries) {
      guard queue.isWanted(job) else { break }
      let item = snapshot.item(at: position)
      let entry = listing.withName(of: item) { self.entry(item, named: $0, in: job.directory, merged) }
      if item.kind == .directory, let entry { directories.append(entry.node) }
      prepared.entries.append(entry)
    }
    job.prepared = prepared
    if let unwanted = queue.finish(job, directories) { discard(unwanted) }
  }

  /// A merged directory, with its version, if it is covered, open, and the kernel knows nothing in it.
  private func prefetchable(_ directory: NodeID) -> (MergedDirectory, version: Int)? {
    store.table.withLock { table in
      guard let state = try? NodeStore.state(of: directory, table), state.isCovered, !state.wasListed,
        state.children == 0
      else { return nil }
      return state.merged.map { ($0, state.version) }
    }
  }

  /// - Returns: nil where the entry is better looked up when it is asked for: an error may have passed by then, and
  ///   what happens to a file by another hard link does not increment the directory's version.
  private func entry(
    _ item: Listing.Item, named name: CName, in directory: NodeID, _ merged: MergedDirectory
  ) -> EntryReply? {
    guard let found = try? store.entry(item, named: name, in: directory, merged) else { return nil }
    store.recordLookup(found, name, in: directory)
    if case .file(_, let attributes) = found, attributes.links > 1 { return nil }
    let entry = try? store.entry(found, name, in: directory, merged)
    // The last watches are left to directories that programs ask for.
    if let entry, item.kind == .directory, !store.isCovered(entry.node) { clear() }
    return entry
  }

  private func discard(_ job: ListingPrefetchQueue.Job) { store.forget(job.prepared?.entries ?? []) }
}
