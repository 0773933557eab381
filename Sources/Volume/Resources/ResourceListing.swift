import Bundles
import Fuse
import Layers
import Posix

/// Listings of the folders below `rsrc:`.
extension Volume {
  /// READDIR and READDIRPLUS of a folder: the names that its lookups find, as they are spelled.
  func listResources(
    _ node: NodeID, after cookie: UInt64, size: Int, withEntries: Bool, for caller: Caller
  ) throws(Errno) -> DirectoryBuffer {
    let (path, number, above) = try resources.folders.withLock { folders throws(Errno) in
      let path = try folders.path(of: node)
      let above = path.isEmpty ? nil : folders.numberAbove(path)
      return (path, try folders.inodeNumber(of: node), above ?? InodeNumbers.root)
    }
    let access = access(for: caller)
    let snapshot = try resourceSnapshot(node, path, for: access, refreshed: cookie == 0)
    var buffer = DirectoryBuffer(size: size)
    for (name, number, place) in [(".", number, ListingSnapshot.dot), ("..", above, ListingSnapshot.dotDot)]
    where cookie < place {
      let fits = buffer.addNameOnly(
        name, inodeNumber: number, kind: .directory, cookie: place, withEntries: withEntries)
      if !fits { return buffer }
    }
    for position in snapshot.positions(after: cookie) {
      let item = snapshot.item(at: position)
      let fits = snapshot.listing.withName(of: item) { name in
        let number =
          item.kind == .directory ? item.inode : numbers.file(device: item.device, inode: item.inode)
        return buffer.addNameOnly(
          name, inodeNumber: number, kind: item.kind, cookie: position.cookie, withEntries: withEntries)
      }
      if !fits { break }
    }
    return buffer
  }

  /// The names as the listing that began last found them. It stays when one has ended: others may go on with it.
  private func resourceSnapshot(
    _ node: NodeID, _ path: [[UInt8]], for access: ResourceAccess, refreshed: Bool
  ) throws(Errno) -> ListingSnapshot {
    // What one may see is not for the other: it is kept under a number that no node has.
    var key = node
    if case .everyone = access { key = NodeID(rawValue: node.rawValue | 1 << 61) }
    if !refreshed, let snapshot = listings.snapshot(of: key) { return snapshot }
    let snapshot = ListingSnapshot(try resourceNames(of: path, for: access))
    listings.keep(snapshot, of: key)
    return snapshot
  }

  private func resourceNames(of path: [[UInt8]], for access: ResourceAccess) throws(Errno) -> Listing {
    var listing = Listing()
    var search = try resources.lookup.search(in: path, for: access)
    for resource in try resources.lookup.list(in: path, for: access) {
      guard let name = resource.path.last else { continue }
      switch try found(name, in: path, &search, for: access) {
      case nil: break
      case .folder(_, let place): listing.add(name, kind: .directory, inode: folderNumber(of: place))
      case .file(let file):
        let identity = file.attributes.identity
        guard let kind = file.attributes.kind else { break }
        listing.add(name, kind: kind, device: identity.device, inode: identity.inode)
      }
    }
    return listing
  }
}
