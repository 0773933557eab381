import Bundles
import Fuse
import Layers
import Posix

/// Listings of the folders below `rsrc:`.
extension Volume {
  /// READDIR and READDIRPLUS of a folder: the names that its lookups find, as they are spelled.
  func listResources(
    _ node: NodeID, after cookie: UInt64, size: Int, withEntries: Bool
  ) throws(Errno) -> DirectoryBuffer {
    let path = try resources.folders.withLock { folders throws(Errno) in try folders.path(of: node) }
    let snapshot = try resourceSnapshot(node, path, refreshed: cookie == 0)
    let positions = snapshot.positions(after: cookie)
    if positions.isEmpty, cookie > 0 { listings.drop(node) }
    var buffer = DirectoryBuffer(size: size)
    let number = folderNumber(of: path)
    let above = path.isEmpty ? InodeNumbers.root : folderNumber(of: path.dropLast())
    let (dot, dotDot) = (ListingSnapshot.dot, ListingSnapshot.dotDot)
    if cookie < dot,
      !buffer.addBare(
        ".", inodeNumber: number, kind: .directory, cookie: dot, withEntries: withEntries)
    {
      return buffer
    }
    if cookie < dotDot,
      !buffer.addBare(
        "..", inodeNumber: above, kind: .directory, cookie: dotDot, withEntries: withEntries)
    {
      return buffer
    }
    for position in positions {
      let item = snapshot.item(at: position)
      let fits = snapshot.listing.withName(of: item) { name in
        let ownNumber =
          item.kind == .directory
          ? InodeNumbers.directory(parent: number, name: name)
          : numbers.file(device: item.device, inode: item.inode)
        return buffer.addBare(
          name, inodeNumber: ownNumber, kind: item.kind, cookie: position.cookie, withEntries: withEntries)
      }
      if !fits { break }
    }
    return buffer
  }

  private func resourceSnapshot(
    _ node: NodeID, _ path: [[UInt8]], refreshed: Bool
  ) throws(Errno) -> ListingSnapshot {
    if !refreshed, let snapshot = listings.snapshot(of: node) { return snapshot }
    var listing = Listing()
    for resource in try resources.lookup.list(in: path) {
      guard let name = resource.path.last else { continue }
      switch try found(path + [name], localization: nil) {
      case nil: break
      case .folder: listing.add(name, kind: .directory)
      case .file(let file):
        let identity = file.attributes.identity
        guard let kind = file.attributes.kind else { break }
        listing.add(name, kind: kind, device: identity.device, inode: identity.inode)
      }
    }
    let snapshot = ListingSnapshot(listing)
    listings.keep(snapshot, of: node)
    return snapshot
  }
}
