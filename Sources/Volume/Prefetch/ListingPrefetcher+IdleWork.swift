import Fuse
import Layers
import Posix

/// Preparing listings in moments when no request is there. It takes as long to find what a directory has as
/// a program takes to go through it, so who walks a tree finds the next directory's listing ready.
extension Volume {
  /// The most names of a directory that is prepared: reading more of them would take too long.
  private static let mostNames = 256
  /// How many names are looked at in a moment, and how many of a directory.
  private static let namesAtOnce = 8
  private static let mostAnswers = 64

  public func runIdleWork(_ begin: () -> Bool) -> Bool {
    guard listingPrefetcher.hasJob, begin() else { return false }
    // Another thread may have taken it.
    guard let job = listingPrefetcher.take() else { return true }
    guard let (merged, version) = merged(toPrepare: job) else {
      if job.prepared == nil { listingPrefetcher.passOver() }
      letGo(job)
      return true
    }
    if job.prepared == nil { read(job, merged, version) } else { lookAtNames(job, merged) }
    return true
  }

  public func didBecomeIdle() {
    for job in listingPrefetcher.clear() { letGo(job) }
  }

  /// The merged directory of one that is worth preparing: everything is told of it, it is open, and the kernel
  /// knows nothing in it; with the version in which it consists of these parts.
  private func merged(toPrepare job: ListingPrefetcher.Job) -> (MergedDirectory, version: Int)? {
    table.withLock { table in
      guard let state = try? Self.state(of: job.directory, table), state.isCovered, !state.wasListed,
        job.prepared != nil || state.children == 0
      else { return nil }
      return state.merged.map { ($0, state.version) }
    }
  }

  /// Reads the directory.
  private func read(_ job: ListingPrefetcher.Job, _ merged: MergedDirectory, _ version: Int) {
    guard let listing = try? merged.list(atMost: Self.mostNames) else { return }
    var job = job
    job.prepared = PreparedListing(snapshot: ListingSnapshot(listing, version: version))
    if let former = listingPrefetcher.goOn(job) { letGo(former) }
  }

  /// Looks at some more of its names.
  private func lookAtNames(_ job: ListingPrefetcher.Job, _ merged: MergedDirectory) {
    guard var prepared = job.prepared else { return }
    let positions = prepared.snapshot.positions(after: 0).prefix(Self.mostAnswers)
      .dropFirst(prepared.answers.count)
    for position in positions.prefix(Self.namesAtOnce) {
      let item = prepared.snapshot.item(at: position)
      prepared.answers.append(
        prepared.snapshot.listing.withName(of: item) { answer(item, named: $0, in: job.directory, merged) })
    }
    var job = job
    job.prepared = prepared
    let isWhole = positions.count <= Self.namesAtOnce
    if let former = isWhole ? listingPrefetcher.finish(job) : listingPrefetcher.goOn(job) { letGo(former) }
  }

  /// - Returns: nil where it is better looked up when it is asked for: an error may be another one then, and
  ///   what happens to a file by another name does not show in the directory's version.
  private func answer(
    _ item: Listing.Item, named name: CName, in directory: NodeID, _ merged: MergedDirectory
  ) -> EntryReply? {
    guard let entry = try? merged.entry(item, named: name) else { return nil }
    if case .file(_, let attributes) = entry, attributes.links > 1 { return nil }
    let answer = try? answer(entry, name, in: directory, merged)
    // Where watches run short they are left to what was asked for.
    if let answer, item.kind == .directory, !isCovered(answer.node) { didBecomeIdle() }
    return answer
  }

  /// A directory's listing, if it is prepared and still true.
  func preparedListing(of directory: NodeID) -> PreparedListing? {
    guard let job = listingPrefetcher.job(of: directory) else { return nil }
    guard let prepared = job.prepared, isUnchanged(directory, since: prepared.snapshot.version) else {
      letGo(job)
      return nil
    }
    counters.listedAhead.add(1)
    return prepared
  }

  /// Whether a prepared answer is still true, as far as the directory's version does not tell.
  func isTrue(_ answer: EntryReply, _ item: Listing.Item) -> Bool {
    item.kind != .directory || isUnchanged(answer.node, since: 0)
  }

  func forget(_ answers: some Sequence<EntryReply?>) {
    for case let answer? in answers { forget(answer.node, lookups: 1) }
  }

  private func letGo(_ job: ListingPrefetcher.Job) { forget(job.prepared?.answers ?? []) }

  /// Notes that a page of a directory was listed.
  func noteListed(_ directories: [NodeID], in parent: NodeID, isBegin: Bool) {
    guard coherence != nil, isBegin || !directories.isEmpty else { return }
    if let former = listingPrefetcher.add(directories, in: parent, isBegin: isBegin) { letGo(former) }
  }
}

extension MergedDirectory {
  /// What a name of a listing stands for, as long as the listing tells which layer has it.
  /// - Returns: nil where it vanished.
  func entry(_ item: Listing.Item, named name: CName) throws(Errno) -> Entry? {
    // A device can be a whiteout by now.
    if item.kind != .directory, item.kind != .characterDevice,
      let attributes = try? part(of: Int(item.layer))?.attributes(of: name), attributes.kind == item.kind
    {
      return .file(layer: Int(item.layer), attributes)
    }
    return try lookup(name, from: Int(item.layer), isLikelyDirectory: item.kind == .directory)
  }
}
