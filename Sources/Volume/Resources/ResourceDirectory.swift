import Bundles
import Fuse
import Glibc
import Layers
import Posix
import Routing

/// The directory `rsrc:` in the mount's root, in which a resource's URL is a path, so that any program that opens
/// files opens it. The kernel caches nothing in it; a file in it is the node of the file itself.
final class ResourceDirectory: Sendable {
  private let resolver: ResourceResolver
  private let store: NodeStore
  private let listings: ListingCache
  private let nodes: Locked<ResourceDirectoryNodes>
  private let name: [UInt8]
  private let startTime = TimeSpec.now

  init(
    _ resolver: ResourceResolver, _ store: NodeStore, _ listings: ListingCache, _ reserved: ReservedNames,
    memory: SharedMemory?
  ) {
    self.resolver = resolver
    self.store = store
    self.listings = listings
    name = reserved.resources
    nodes = Locked(
      ResourceDirectoryNodes(
        root: store.inodeNumber(ofDirectory: name, in: InodeNumbers.root),
        record: memory.map { ResourceDirectoryRecord($0) }))
  }

  func forget(_ node: NodeID, lookups: UInt64) { nodes.withLock { $0.forget(node, lookups: lookups) } }

  // MARK: - Lookup

  /// Replies to a LOOKUP of the directory itself in the root, or in one of its directories.
  func lookUp(_ name: CName, in parent: NodeID, _ reply: consuming Reply<ReplyKind.Entry>) {
    let entry: EntryReply
    do throws(Errno) {
      entry = parent == .root ? directoryEntry([], at: []) : try self.entry(name, in: parent, reply.caller)
    } catch {
      return reply.fail(error)
    }
    if reply.send(entry) { return }
    if ResourceDirectoryNodes.contain(entry.node) {
      forget(entry.node, lookups: 1)
    } else {
      store.forget(entry.node, lookups: 1)
    }
  }

  private func entry(_ name: CName, in parent: NodeID, _ caller: Caller) throws(Errno) -> EntryReply {
    let directory = try nodes.withLock { nodes throws(Errno) in try nodes.path(of: parent) }
    let name = [UInt8](bytesOf: name)
    // Bounded in case a program replaces the file in a loop.
    for _ in 0..<16 {
      switch try find(name, in: directory, for: resolver.access(for: caller)) {
      case nil: throw name.count > NAME_MAX ? .fileNameTooLong : .noSuchFileOrDirectory
      case .directory(let path, let location): return directoryEntry(path, at: location)
      case .file(let resource): if let entry = try fileEntry(at: resource.path) { return entry }
      }
    }
    throw .staleFileHandle
  }

  private enum FoundName {
    /// A directory, by its path below the resource directory, and the path of the directory that it shows.
    case directory([[UInt8]], at: [[UInt8]])
    case file(FoundResource)
  }

  /// Finds a name as it is, or else as the end of a URL: percent-encoded, with a query.
  /// - Throws: EINVAL for a name that no resource can have.
  private func find(
    _ name: [UInt8], in directory: [[UInt8]], for access: ResourceAccess
  ) throws(Errno) -> FoundName? {
    var search = try resolver.lookup.search(in: directory, for: access)
    if let found = try find(name, in: directory, &search, for: access) { return found }
    guard name.contains(UInt8(ascii: "%")) || name.contains(UInt8(ascii: "?")),
      let url = try? RouteURL(Array("\(resolver.scheme):///".utf8) + name), url.segments.count == 1
    else { return nil }
    let wanted: ResourceURL
    do throws(ResourceURLError) {
      wanted = try ResourceURL(
        host: nil, segments: directory + url.segments, localization: url.parameter("localization"))
    } catch {
      throw error.errno
    }
    guard let name = wanted.path.last else { return nil }
    search = try resolver.lookup.search(
      in: wanted.path.dropLast(), localization: wanted.localization, for: access)
    let found = try find(name, in: wanted.path.dropLast(), &search, for: access)
    // A directory has no localization that its files would inherit.
    if case .directory = found, wanted.localization != nil { return nil }
    return found
  }

  private func find(
    _ name: [UInt8], in directory: [[UInt8]], _ search: inout ResourceSearch?, for access: ResourceAccess
  ) throws(Errno) -> FoundName? {
    guard let found = try search?.find(name), resolver.isVisible(found) else { return nil }
    // A path component is one thing: where one layer or localization has a file and another a directory of that
    // name, the lookup's first find is shown and the other is not reached this way.
    if found.attributes.isDirectory { return .directory(directory + [name], at: found.path) }
    // An image is found without its extension, which must not shadow a directory of that name.
    if found.name != name, try resolver.lookup.hasFolder(directory + [name], for: access) {
      let location = try resolver.lookup.layout().resourceFolder + directory + [name]
      return .directory(directory + [name], at: location)
    }
    return .file(found)
  }

  // MARK: - Entries

  /// The entry for a directory; its node has one lookup more.
  private func directoryEntry(_ path: [[UInt8]], at location: [[UInt8]]) -> EntryReply {
    let number = inodeNumber(at: location)
    let node = nodes.withLock { $0.lookUp(path, inodeNumber: number) }
    return EntryReply(node: node, attributes: attributes(number), timeout: 0)
  }

  /// - Throws: ESTALE.
  func attributes(of node: NodeID) throws(Errno) -> NodeAttributes {
    attributes(try nodes.withLock { nodes throws(Errno) in try nodes.inodeNumber(of: node) })
  }

  /// The mtime is always new, so that the kernel keeps no listing.
  private func attributes(_ number: UInt64) -> NodeAttributes {
    NodeAttributes(
      FileStatus(directory: 0o555, owner: getuid(), group: getgid(), modified: .now, changed: startTime),
      inodeNumber: number, timeout: 0)
  }

  /// Derived from the path of the directory that it shows, so that programs notice loops of symbolic links.
  private func inodeNumber(at location: [[UInt8]]) -> UInt64 {
    ([name] + location).reduce(InodeNumbers.root) { store.inodeNumber(ofDirectory: $1, in: $0) }
  }

  /// The entry for a file of the merged view, with one lookup more; nil if the path is no file's any more.
  private func fileEntry(at path: [[UInt8]]) throws(Errno) -> EntryReply? {
    var parent = NodeID.root
    // The directories' nodes are needed only until there is the file's, which keeps them.
    var ancestors: [NodeID] = []
    defer { for node in ancestors.reversed() { store.forget(node, lookups: 1) } }
    for (index, name) in path.enumerated() {
      let isLast = index == path.count - 1
      let directory: MergedDirectory
      do throws(Errno) { directory = try store.merged(of: parent) } catch {
        if error == .noSuchFileOrDirectory { return nil }
        throw error
      }
      let entry = try withCName(name) { name throws(Errno) -> EntryReply? in
        guard let found = try directory.lookup(name), found.isDirectory != isLast else { return nil }
        return try store.entry(found, name, in: parent, directory)
      }
      guard var entry else { return nil }
      if isLast {
        entry.timeout = 0
        return entry
      }
      ancestors.append(entry.node)
      parent = entry.node
    }
    return nil
  }

  // MARK: - Listings

  /// READDIR and READDIRPLUS: the names that a lookup finds, as they are spelled.
  func list(
    _ node: NodeID, after cookie: UInt64, size: Int, withEntries: Bool, for caller: Caller
  ) throws(Errno) -> DirectoryBuffer {
    let (path, number, above) = try nodes.withLock { nodes throws(Errno) in
      let path = try nodes.path(of: node)
      let above = path.isEmpty ? nil : nodes.inodeNumber(above: path)
      return (path, try nodes.inodeNumber(of: node), above ?? InodeNumbers.root)
    }
    let snapshot = try snapshot(node, path, for: resolver.access(for: caller), isFirst: cookie == 0)
    var buffer = DirectoryBuffer(size: size)
    for (name, number, next) in [(".", number, ListingCookies.dot), ("..", above, ListingCookies.dotDot)]
    where cookie < next {
      let fits = buffer.addNameOnly(
        name, inodeNumber: number, kind: .directory, cookie: next, withEntries: withEntries)
      if !fits { return buffer }
    }
    for position in try snapshot.positions(after: cookie, store.cookies) {
      let item = snapshot.item(at: position)
      let fits = snapshot.listing.withName(of: item) { name in
        let number =
          item.kind == .directory ? item.inode : store.inodeNumber(device: item.device, inode: item.inode)
        return buffer.addNameOnly(
          name, inodeNumber: number, kind: item.kind, cookie: UInt64(position.cookie),
          withEntries: withEntries)
      }
      if !fits { break }
    }
    return buffer
  }

  /// The latest listing from the beginning. It is kept after its last page, for other readers.
  private func snapshot(
    _ node: NodeID, _ path: [[UInt8]], for access: ResourceAccess, isFirst: Bool
  ) throws(Errno) -> ListingSnapshot {
    // Callers with other rights get a snapshot of their own, under a number that no node has.
    var key = node
    if case .everyone = access { key = NodeID(rawValue: node.rawValue | 1 << 61) }
    if !isFirst, let snapshot = listings.snapshot(of: key) { return snapshot }
    let snapshot = ListingSnapshot(try listing(of: path, for: access), store.cookies)
    listings.keep(snapshot, of: key)
    return snapshot
  }

  private func listing(of path: [[UInt8]], for access: ResourceAccess) throws(Errno) -> Listing {
    var listing = Listing()
    var search = try resolver.lookup.search(in: path, for: access)
    for resource in try resolver.lookup.list(in: path, for: access) {
      guard let name = resource.path.last else { continue }
      switch try find(name, in: path, &search, for: access) {
      case nil: break
      case .directory(_, let location):
        listing.add(name, kind: .directory, inode: inodeNumber(at: location))
      case .file(let file):
        let identity = file.attributes.identity
        guard let kind = file.attributes.kind else { break }
        listing.add(name, kind: kind, device: identity.device, inode: identity.inode)
      }
    }
    return listing
  }
}

extension Entry {
  fileprivate var isDirectory: Bool { if case .directory = self { true } else { false } }
}
