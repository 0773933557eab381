import Fuse
import Glibc
import Layers
import Posix

/// Directories: their listings.
extension Volume {
  public func openDirectory(_ node: NodeID, reply: consuming Reply<ReplyKind.OpenDirectory>) {
    // Declining makes the kernel keep listings until they are taken back, or mtime changes. A merged directory
    // can change without that: by a mark, or when a layer's part comes or goes.
    if coherence == nil { reply.sendUncached() } else { reply.fail(.noFunction) }
  }

  public func readDirectory(
    _ node: NodeID, after cookie: UInt64, size: Int, withEntries: Bool,
    reply: consuming Reply<ReplyKind.Bytes>
  ) {
    do throws(Errno) {
      if ResourceFolderNodes.contain(node) {
        let page = try listResources(
          node, after: cookie, size: size, withEntries: withEntries, for: reply.caller)
        _ = reply.send(page)
        return
      }
      let page = try DirectoryPage.filled(self, node, after: cookie, size: size, withEntries: withEntries)
      guard reply.send(page.buffer) else {
        for node in page.lookedUp { forget(node, lookups: 1) }
        return
      }
      if withEntries { noteListed(page.directories, in: node, isBegin: cookie == 0) }
    } catch {
      reply.fail(error)
    }
  }
}

/// One reply to READDIR or READDIRPLUS, being filled.
private struct DirectoryPage: ~Copyable {
  private let volume: Volume
  private let node: NodeID
  private let directory: ListedDirectory
  private let withEntries: Bool
  private(set) var buffer: DirectoryBuffer
  /// The nodes whose lookups this reply delivers.
  private(set) var lookedUp: [NodeID] = []
  /// The directories among them.
  private(set) var directories: [NodeID] = []
  /// How many names it has taken, and of as many the prepared answers, to deliver or to forget them.
  private(set) var taken = 0
  /// Whether the snapshot still tells which layer has each name. A change that was not told so far is taken
  /// back after this reply, since that waits for requests in flight in the directory.
  private var isCertain = false

  static func filled(
    _ volume: Volume, _ node: NodeID, after cookie: UInt64, size: Int, withEntries: Bool
  ) throws(Errno) -> DirectoryPage {
    let directory = try ListedDirectory(volume, node)
    let prepared = cookie == 0 ? volume.preparedListing(of: node) : nil
    let snapshot = try directory.snapshot(refreshed: cookie == 0, prepared?.snapshot)
    let positions = snapshot.positions(after: cookie)
    // The kernel asks until nothing is left.
    if positions.isEmpty, cookie > 0 { volume.listings.drop(node) }
    let merged: MergedDirectory?
    do throws(Errno) { merged = withEntries ? try volume.merged(of: node) : nil } catch {
      volume.forget(prepared?.answers ?? [])
      throw error
    }
    var page = DirectoryPage(volume, node, directory, size: size, withEntries: withEntries)
    page.isCertain = volume.isUnchanged(node, since: snapshot.version)
    page.fill(snapshot, positions, prepared?.answers ?? [], merged, after: cookie)
    if let prepared { volume.forget(prepared.answers.dropFirst(page.taken)) }
    return page
  }

  private init(
    _ volume: Volume, _ node: NodeID, _ directory: ListedDirectory, size: Int, withEntries: Bool
  ) {
    self.volume = volume
    self.node = node
    self.directory = directory
    self.withEntries = withEntries
    buffer = DirectoryBuffer(size: size)
  }

  private mutating func fill(
    _ snapshot: ListingSnapshot, _ positions: ArraySlice<ListingSnapshot.Position>,
    _ prepared: [EntryReply?],
    _ merged: MergedDirectory?, after cookie: UInt64
  ) {
    let (dot, dotDot) = (ListingSnapshot.dot, ListingSnapshot.dotDot)
    if cookie < dot, !addNameOnly(".", directory.number, cookie: dot) { return }
    if cookie < dotDot, !addNameOnly("..", directory.parentNumber, cookie: dotDot) { return }
    for position in positions {
      let item = snapshot.item(at: position)
      // The root, of which some names are left out, is never prepared.
      let known = taken < prepared.count ? prepared[taken] : nil
      let next = position.cookie
      let fits = snapshot.listing.withName(of: item) { name in
        if node == .root, volume.control.isNamed(name) { return addControlFile(name, cookie: next) }
        // What is looked up by this name is not what a layer has.
        if node == .root, volume.resources.isFolder(name) { return true }
        if let merged { return addEntry(name, item, known, merged, cookie: next) }
        return buffer.add(
          name, inodeNumber: directory.inodeNumber(of: item, name), kind: item.kind, cookie: next)
      }
      if !fits { return }
    }
  }

  private mutating func addNameOnly(_ name: CName, _ number: UInt64, cookie: UInt64) -> Bool {
    buffer.addNameOnly(name, inodeNumber: number, kind: .directory, cookie: cookie, withEntries: withEntries)
  }

  /// Adds the control file, whatever the bundle has of its name. Never with its attributes: a write to it that
  /// waits for a barrier keeps its page locked, and a listing that brought a new size or mtime would wait for
  /// that page with the directory locked, for which in turn the barrier waits.
  /// - Returns: false when the page is full.
  private mutating func addControlFile(_ name: CName, cookie: UInt64) -> Bool {
    if volume.control.isHidden { return true }
    return buffer.addNameOnly(
      name, inodeNumber: ControlFile.inodeNumber, kind: .regular, cookie: cookie, withEntries: withEntries)
  }

  /// - Parameter known: the answer, if it is prepared; it is taken unless the page is full.
  /// - Returns: false when the page is full.
  private mutating func addEntry(
    _ name: CName, _ item: Listing.Item, _ known: EntryReply?, _ merged: MergedDirectory, cookie: UInt64
  ) -> Bool {
    guard buffer.hasRoomForEntry(nameLength: strlen(name)) else { return false }
    taken += 1
    do throws(Errno) {
      // A name that vanished since the layers were read is left out.
      guard let answer = try answer(name, item, known, merged) else { return true }
      lookedUp.append(answer.node)
      if item.kind == .directory { directories.append(answer.node) }
      buffer.add(name, entry: answer, cookie: cookie)
      return true
    } catch {
      // The name is there all the same; who looks it up will be told the error.
      return buffer.addNameOnly(
        name, inodeNumber: directory.inodeNumber(of: item, name), kind: item.kind, cookie: cookie)
    }
  }
}

extension DirectoryPage {
  /// The answer for a name, prepared or not; nil where it vanished.
  private func answer(
    _ name: CName, _ item: Listing.Item, _ known: EntryReply?, _ merged: MergedDirectory
  ) throws(Errno) -> EntryReply? {
    if let known {
      if isCertain, volume.isTrue(known, item) { return known }
      volume.forget(known.node, lookups: 1)
    }
    guard let found = try lookUp(name, item, merged) else { return nil }
    return try volume.answer(found, name, in: node, merged)
  }

  /// What a name stands for; where the snapshot still tells its layer, without a look at the others.
  private func lookUp(_ name: CName, _ item: Listing.Item, _ merged: MergedDirectory) throws(Errno) -> Entry?
  {
    if isCertain { return try merged.entry(item, named: name) }
    return try merged.lookup(name, isLikelyDirectory: item.kind == .directory)
  }
}

/// What the pages of a directory's listing have in common.
private struct ListedDirectory {
  private let volume: Volume
  private let node: NodeID
  let number: UInt64
  let parentNumber: UInt64

  init(_ volume: Volume, _ node: NodeID) throws(Errno) {
    self.volume = volume
    self.node = node
    (number, parentNumber) = try volume.table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      guard let state = table[slot].directory else { throw .notDirectory }
      state.wasListed = true
      let parent = slot == NodeTable.root ? slot : table[slot].parent
      return (table[slot].inodeNumber, table[parent].inodeNumber)
    }
  }

  /// A listing that begins reads the layers; one that goes on follows the latest that began, as long as that
  /// is kept.
  /// - Parameter prepared: one that is still true.
  func snapshot(refreshed: Bool, _ prepared: ListingSnapshot?) throws(Errno) -> ListingSnapshot {
    if let prepared {
      volume.listings.keep(prepared, of: node)
      return prepared
    }
    if !refreshed, let snapshot = volume.listings.snapshot(of: node) { return snapshot }
    let merged = try volume.merged(of: node)
    let version = volume.version(of: node)
    var listing = try merged.list()
    if node == .root { listing.add(volume.control.name, kind: .regular) }
    let snapshot = ListingSnapshot(listing, version: version)
    volume.listings.keep(snapshot, of: node)
    return snapshot
  }

  func inodeNumber(of item: Listing.Item, _ name: CName) -> UInt64 {
    return item.kind == .directory
      ? InodeNumbers.directory(parent: number, name: name)
      : volume.numbers.file(device: item.device, inode: item.inode)
  }
}
