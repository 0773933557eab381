import Fuse
import Glibc
import Layers
import Posix

/// OPENDIR, READDIR and READDIRPLUS.
struct DirectoryOperations: Sendable {
  let store: NodeStore
  let control: ControlFile
  let reserved: ReservedNames
  let listings: ListingCache
  let prefetcher: ListingPrefetcher
  let resources: ResourceDirectory
  /// As in `AttributeOperations`.
  let pages: PageKeeper?

  /// The end of a listing that the kernel must not cache. An empty reply would complete its cached listing, from which
  /// it answers readers at any offset but the first without asking; it skips a reply too short for an entry.
  private static let uncachedEnd = [UInt8](repeating: 0, count: 8)

  func open(_ node: NodeID, _ reply: consuming Reply<ReplyKind.OpenDirectory>) {
    // ENOSYS makes the kernel keep listings until they are invalidated or the mtime changes. A merged directory can
    // change without a new mtime: by a whiteout, or when a layer's part comes or goes.
    if store.watcher == nil { reply.sendUncached() } else { reply.fail(.noFunction) }
  }

  func read(
    _ node: NodeID, after cookie: UInt64, size: Int, withEntries: Bool,
    _ reply: consuming Reply<ReplyKind.Bytes>
  ) {
    let caller = reply.caller
    do throws(Errno) {
      if ResourceDirectoryNodes.contain(node) {
        let page = try resources.list(
          node, after: cookie, size: size, withEntries: withEntries, for: caller)
        if page.used > 0 { _ = reply.send(page) } else { reply.send(Self.uncachedEnd) }
        return
      }
      // Further pages ask no layer.
      if store.isShared {
        try store.evictingOnDemand { () throws(Errno) in
          try store.check(.read, in: try store.merged(of: node), node, for: caller)
        }
      }
      let page = try DirectoryPage.filled(self, node, after: cookie, size: size, withEntries: withEntries)
      if page.buffer.used == 0, store.wasReplaced(node) { return reply.send(Self.uncachedEnd) }
      guard reply.send(page.buffer) else {
        for node in page.lookedUp { store.forget(node, lookups: 1) }
        return
      }
      if withEntries { prefetcher.recordListing(page.directories, in: node, isFirst: cookie == 0) }
    } catch {
      reply.fail(error)
    }
  }
}

/// One reply to READDIR or READDIRPLUS, being filled.
private struct DirectoryPage: ~Copyable {
  private let operations: DirectoryOperations
  private let node: NodeID
  private let directory: ListedDirectory
  private let withEntries: Bool
  private(set) var buffer: DirectoryBuffer
  /// The nodes whose lookups this reply delivers.
  private(set) var lookedUp: [NodeID] = []
  /// The directories among them, except those that were prefetched.
  private(set) var directories: [NodeID] = []
  /// How many names it has taken, and as many of the prefetched entries.
  private var taken = 0
  /// Whether the snapshot's layer for each name is still right. A change that is not reported yet is invalidated
  /// after this reply, since that waits for requests in flight in the directory.
  private let isCurrent: Bool

  private var store: NodeStore { operations.store }

  static func filled(
    _ operations: DirectoryOperations, _ node: NodeID, after cookie: UInt64, size: Int, withEntries: Bool
  ) throws(Errno) -> DirectoryPage {
    let (store, prefetcher) = (operations.store, operations.prefetcher)
    let directory = try ListedDirectory(operations, node)
    let prepared = cookie == 0 ? prefetcher.takeListing(of: node) : nil
    let snapshot = try directory.snapshot(isFirst: cookie == 0, prepared?.snapshot)
    let positions = try snapshot.positions(after: cookie, store.cookies)
    // The kernel asks until nothing is left.
    if positions.isEmpty, cookie > 0 { operations.listings.drop(node) }
    let merged: MergedDirectory?
    do throws(Errno) {
      merged =
        withEntries ? try store.evictingOnDemand { () throws(Errno) in try store.merged(of: node) } : nil
    } catch {
      store.forget(prepared?.entries ?? [])
      throw error
    }
    var page = DirectoryPage(
      operations: operations, node: node, directory: directory, withEntries: withEntries,
      buffer: DirectoryBuffer(size: size), isCurrent: store.isUnchanged(node, since: snapshot.version))
    page.fill(snapshot, positions, prepared?.entries ?? [], merged, after: cookie)
    if let prepared { store.forget(prepared.entries.dropFirst(page.taken)) }
    return page
  }

  private mutating func fill(
    _ snapshot: ListingSnapshot, _ positions: ArraySlice<ListingSnapshot.Position>,
    _ prepared: [EntryReply?], _ merged: MergedDirectory?, after cookie: UInt64
  ) {
    let (dot, dotDot) = (ListingCookies.dot, ListingCookies.dotDot)
    if cookie < dot, !addNameOnly(".", directory.number, cookie: dot) { return }
    if cookie < dotDot, !addNameOnly("..", directory.parentNumber, cookie: dotDot) { return }
    for position in positions {
      let item = snapshot.item(at: position)
      // The root, some of whose names are left out, is never prefetched.
      let known = taken < prepared.count ? prepared[taken] : nil
      let fits = snapshot.listing.withName(of: item) { name in
        add(name, item, known, merged, cookie: UInt64(position.cookie))
      }
      if !fits { return }
    }
  }

  /// - Parameter known: the prefetched entry; it is taken unless the page is full.
  /// - Returns: false when the page is full.
  private mutating func add(
    _ name: CName, _ item: Listing.Item, _ known: EntryReply?, _ merged: MergedDirectory?, cookie: UInt64
  ) -> Bool {
    if node == .root {
      if operations.reserved.isControl(name) {
        // A layer can have it in another spelling.
        let isShown = operations.reserved.listsControl && operations.reserved.isControlSpelling(name)
        return isShown ? addControlFile(name, cookie: cookie) : true
      }
      if operations.reserved.isResources(name) { return true }
    }
    if let merged { return addEntry(name, item, known, merged, cookie: cookie) }
    return buffer.add(
      name, inodeNumber: directory.inodeNumber(of: item, name), kind: item.kind, cookie: cookie)
  }

  private mutating func addNameOnly(_ name: CName, _ number: UInt64, cookie: UInt64) -> Bool {
    buffer.addNameOnly(name, inodeNumber: number, kind: .directory, cookie: cookie, withEntries: withEntries)
  }

  /// Adds the control file, never with its attributes. While a write to it waits for a barrier, its page is locked;
  /// with a new size or mtime in a listing the kernel would wait for that page with the directory locked, for which
  /// the barrier waits in turn.
  private mutating func addControlFile(_ name: CName, cookie: UInt64) -> Bool {
    buffer.addNameOnly(
      name, inodeNumber: ControlFile.inodeNumber, kind: .regular, cookie: cookie, withEntries: withEntries)
  }

  private mutating func addEntry(
    _ name: CName, _ item: Listing.Item, _ known: EntryReply?, _ merged: MergedDirectory, cookie: UInt64
  ) -> Bool {
    guard buffer.hasRoomForEntry(nameLength: strlen(name)) else { return false }
    taken += 1
    do throws(Errno) {
      // A name that vanished since the layers were read is left out.
      guard let entry = try entry(name, item, known, merged) else { return true }
      lookedUp.append(entry.node)
      if item.kind == .directory, known == nil { directories.append(entry.node) }
      operations.pages?.willReply(with: entry.attributes.attributes, of: entry.node)
      buffer.add(name, entry: entry, cookie: cookie)
      return true
    } catch {
      // The name is there all the same; a LOOKUP will return the error.
      return buffer.addNameOnly(
        name, inodeNumber: directory.inodeNumber(of: item, name), kind: item.kind, cookie: cookie)
    }
  }

  /// The entry for a name, prefetched or looked up; nil where it vanished.
  private func entry(
    _ name: CName, _ item: Listing.Item, _ known: EntryReply?, _ merged: MergedDirectory
  ) throws(Errno) -> EntryReply? {
    if let known {
      let isKnown =
        item.kind == .directory
        ? store.isUnchanged(known.node, since: 0) : !store.isWrittenDirectly(known.node)
      if isCurrent, isKnown { return known }
      store.forget(known.node, lookups: 1)
    }
    let found =
      isCurrent
      ? try store.entry(item, named: name, in: node, merged)
      : try store.lookUp(name, in: node, merged, isLikelyDirectory: item.kind == .directory)
    store.recordLookup(found, name, in: node)
    return try found.map { found throws(Errno) in try store.entry(found, name, in: node, merged) }
  }
}

/// What the pages of a directory's listing have in common.
private struct ListedDirectory {
  private let operations: DirectoryOperations
  private let node: NodeID
  let number: UInt64
  let parentNumber: UInt64

  init(_ operations: DirectoryOperations, _ node: NodeID) throws(Errno) {
    self.operations = operations
    self.node = node
    (number, parentNumber) = try operations.store.table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      guard let state = table[slot].directory else { throw .notDirectory }
      state.wasListed = true
      let parent = slot == NodeTable.root ? slot : table[slot].parent
      return (table[slot].inodeNumber, table[parent].inodeNumber)
    }
  }

  /// The first page reads the layers; further pages follow the latest snapshot, while it is kept.
  /// - Parameter prepared: a prefetched snapshot that is still valid.
  func snapshot(isFirst: Bool, _ prepared: ListingSnapshot?) throws(Errno) -> ListingSnapshot {
    let (store, listings) = (operations.store, operations.listings)
    if let prepared {
      store.record(prepared.listing.whiteouts, in: node)
      listings.keep(prepared, of: node)
      return prepared
    }
    if !isFirst, let snapshot = listings.snapshot(of: node) { return snapshot }
    var (listing, version) = try store.evictingOnDemand { () throws(Errno) in
      let merged = try store.merged(of: node)
      let version = store.version(of: node)
      return (try store.list(merged, node), version)
    }
    store.record(listing.whiteouts, in: node)
    if node == .root, operations.reserved.listsControl {
      listing.add(operations.reserved.control, kind: .regular)
    }
    let snapshot = ListingSnapshot(listing, store.cookies, version: version)
    listings.keep(snapshot, of: node)
    return snapshot
  }

  func inodeNumber(of item: Listing.Item, _ name: CName) -> UInt64 {
    item.kind == .directory
      ? operations.store.knownInodeNumber(of: name, in: node)
        ?? operations.store.inodeNumber(ofDirectory: [UInt8](bytesOf: name), in: number)
      : operations.store.inodeNumber(device: item.device, inode: item.inode)
  }
}
