import Fuse
import Layers
import Posix

/// Lists directories before they are asked for, while no request is there. Reading a directory takes as long as a
/// program takes to go through its entries, so a program that walks a tree finds the next listing ready.
struct ListingPrefetcher: Sendable {
  /// Directories with more names are not prefetched: reading one would take too long.
  private static let maxNames = 256
  /// Names looked up between two polls for requests, and at most for a directory.
  private static let namesPerStep = 8
  private static let maxEntries = 64

  let store: NodeStore
  private let queue = ListingPrefetchQueue()
  let hits = Counter()

  /// - Parameter begin: called before, if there is work; false means that a request is there.
  /// - Returns: whether a step was done.
  func runStep(_ begin: () -> Bool) -> Bool {
    guard queue.hasJob, begin() else { return false }
    // Another worker may have taken it.
    guard let job = queue.take() else { return true }
    guard let (merged, version) = prefetchable(job) else {
      if job.prepared == nil { queue.skip() }
      discard(job)
      return true
    }
    if job.prepared == nil { read(job, merged, version) } else { lookUpNames(job, merged) }
    return true
  }

  func clear() {
    for job in queue.clear() { discard(job) }
  }

  /// Records that a page of a directory was listed; `directories` are those that the page had.
  func recordListing(_ directories: [NodeID], in parent: NodeID, isFirst: Bool) {
    guard store.watcher != nil, isFirst || !directories.isEmpty else { return }
    if let former = queue.add(directories, in: parent, isBegin: isFirst) { discard(former) }
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

  // MARK: - Steps

  /// The merged directory of a job, with its version, if it is covered, open, and the kernel knows nothing in it.
  private func prefetchable(_ job: ListingPrefetchQueue.Job) -> (MergedDirectory, version: Int)? {
    store.table.withLock { table in
      guard let state = try? NodeStore.state(of: job.directory, table), state.isCovered, !state.wasListed,
        job.prepared != nil || state.children == 0
      else { return nil }
      return state.merged.map { ($0, state.version) }
    }
  }

  private func read(_ job: ListingPrefetchQueue.Job, _ merged: MergedDirectory, _ version: Int) {
    guard let listing = try? merged.list(atMost: Self.maxNames) else { return }
    var job = job
    job.prepared = PreparedListing(snapshot: ListingSnapshot(listing, version: version))
    if let former = queue.putBack(job) { discard(former) }
  }

  private func lookUpNames(_ job: ListingPrefetchQueue.Job, _ merged: MergedDirectory) {
    guard var prepared = job.prepared else { return }
    let positions = prepared.snapshot.positions(after: 0).prefix(Self.maxEntries)
      .dropFirst(prepared.entries.count)
    for position in positions.prefix(Self.namesPerStep) {
      let item = prepared.snapshot.item(at: position)
      prepared.entries.append(
        prepared.snapshot.listing.withName(of: item) { entry(item, named: $0, in: job.directory, merged) })
    }
    var job = job
    job.prepared = prepared
    let isComplete = positions.count <= Self.namesPerStep
    if let former = isComplete ? queue.finish(job) : queue.putBack(job) { discard(former) }
  }

  /// - Returns: nil where the entry is better looked up when it is asked for: an error may have passed by then, and
  ///   what happens to a file by another hard link does not increment the directory's version.
  private func entry(
    _ item: Listing.Item, named name: CName, in directory: NodeID, _ merged: MergedDirectory
  ) -> EntryReply? {
    guard let found = try? merged.entry(item, named: name) else { return nil }
    store.recordLookup(found, name, in: directory)
    if case .file(_, let attributes) = found, attributes.links > 1 { return nil }
    let entry = try? store.entry(found, name, in: directory, merged)
    // The last watches are left to directories that programs ask for.
    if let entry, item.kind == .directory, !store.isCovered(entry.node) { clear() }
    return entry
  }

  private func discard(_ job: ListingPrefetchQueue.Job) { store.forget(job.prepared?.entries ?? []) }
}
