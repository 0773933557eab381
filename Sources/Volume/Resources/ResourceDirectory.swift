import Bundles
import Fuse
import Glibc
import Layers
import Posix
import Routing

/// The folder `rsrc:` in the mount's root: there a resource's URL is a path, so that every program that opens
/// files opens it. Nothing in it is kept by the kernel; what is found is the node of the file itself.
extension Volume {
  /// LOOKUP in one of its folders, or of itself in the root.
  func lookUpResource(_ name: CName, in parent: NodeID, _ reply: consuming Reply<ReplyKind.Entry>) {
    let entry: EntryReply
    do throws(Errno) {
      entry = parent == .root ? topEntry : try resourceEntry(name, in: parent, reply.caller)
    } catch {
      reply.fail(error)
      return
    }
    if !reply.send(entry) { forget(entry.node, lookups: 1) }
  }

  private func resourceEntry(
    _ name: CName, in parent: NodeID, _ caller: Caller
  ) throws(Errno) -> EntryReply {
    let folder = try resources.folders.withLock { folders throws(Errno) in try folders.path(of: parent) }
    let name = [UInt8](bytesOf: name)
    // The bound is only against someone who replaces it for ever.
    for _ in 0..<16 {
      switch try found(name, in: folder, for: access(for: caller)) {
      case nil: throw .noSuchFileOrDirectory
      case .folder(let path, let place): return folderEntry(path, place)
      case .file(let resource): if let entry = try fileEntry(at: resource.path) { return entry }
      }
    }
    throw .staleFileHandle
  }

  /// What a name of a folder stands for.
  enum FoundName {
    /// By its path below the resource folder; with the path of the directory that stands for it.
    case folder([[UInt8]], place: [[UInt8]])
    case file(FoundResource)
  }

  /// A name is taken as it is, and if nothing is called so, as the end of a URL: percent-decoded, with a query.
  /// - Throws: EINVAL for what no resource is called.
  private func found(
    _ name: [UInt8], in folder: [[UInt8]], for access: ResourceAccess
  ) throws(Errno) -> FoundName? {
    var search = try resources.lookup.search(in: folder, for: access)
    if let found = try found(name, in: folder, &search, for: access) { return found }
    guard name.contains(UInt8(ascii: "%")) || name.contains(UInt8(ascii: "?")),
      let url = try? RouteURL(Array("\(resources.scheme):///".utf8) + name), url.segments.count == 1
    else { return nil }
    let wanted: ResourceURL
    do throws(ResourceURLError) {
      wanted = try ResourceURL(
        host: nil, segments: folder + url.segments, localization: url.parameter("localization"))
    } catch {
      throw error.errno
    }
    guard let name = wanted.path.last else { return nil }
    search = try resources.lookup.search(
      in: wanted.path.dropLast(), localization: wanted.localization, for: access)
    let found = try found(name, in: wanted.path.dropLast(), &search, for: access)
    // A folder has no language that its files would inherit.
    if case .folder = found, wanted.localization != nil { return nil }
    return found
  }

  /// - Parameter search: that of the folder.
  func found(
    _ name: [UInt8], in folder: [[UInt8]], _ search: inout ResourceSearch?, for access: ResourceAccess
  ) throws(Errno) -> FoundName? {
    guard let found = try search?.find(name), isShown(found) else { return nil }
    // A name of a path is one thing: where one layer or language has a file and another a folder, it is what
    // the lookup finds first, and what only the other one holds is not reached this way.
    if found.attributes.isDirectory { return .folder(folder + [name], place: found.path) }
    // An image is found without its extension, which must not stand in the way of a folder of that name.
    if found.name != name, try resources.lookup.hasFolder(folder + [name], for: access) {
      return .folder(folder + [name], place: try resources.lookup.layout().resourceFolder + folder + [name])
    }
    return .file(found)
  }

  private var topEntry: EntryReply { folderEntry([], []) }

  /// The answer for a folder; its node has one lookup more.
  private func folderEntry(_ path: [[UInt8]], _ place: [[UInt8]]) -> EntryReply {
    let number = folderNumber(of: place)
    let node = resources.folders.withLock { $0.lookUp(path, inodeNumber: number) }
    return EntryReply(node: node, attributes: folderAttributes(number), timeout: 0)
  }

  /// The attributes of a folder. Their mtime moves, so that no listing is kept.
  private func folderAttributes(_ number: UInt64) -> NodeAttributes {
    NodeAttributes(
      FileStatus(
        directory: 0o555, owner: getuid(), group: getgid(), modified: .now, changed: resources.beginning),
      inodeNumber: number, timeout: 0)
  }

  /// The inode number of a folder, from the path of the directory that stands for it: so programs notice when
  /// links lead them in a circle.
  func folderNumber(of place: [[UInt8]]) -> UInt64 {
    ([resources.folderName] + place).reduce(InodeNumbers.root) {
      InodeNumbers.directory(parent: $0, name: $1)
    }
  }

  /// GETATTR of a folder.
  func attributes(ofResourceFolder node: NodeID) throws(Errno) -> NodeAttributes {
    folderAttributes(
      try resources.folders.withLock { folders throws(Errno) in try folders.inodeNumber(of: node) })
  }

  /// The answer for a file of the merged view, as one that is looked up name by name gets; its node has one
  /// lookup more.
  /// - Returns: nil if the path is none of a file any more.
  private func fileEntry(at path: [[UInt8]]) throws(Errno) -> EntryReply? {
    var parent = NodeID.root
    // The directories' nodes are wanted only until the file's is there, which then keeps them.
    var passed: [NodeID] = []
    defer { for node in passed.reversed() { forget(node, lookups: 1) } }
    for (place, name) in path.enumerated() {
      let isLast = place == path.count - 1
      let directory: MergedDirectory
      do throws(Errno) { directory = try merged(of: parent) } catch {
        if error == .noSuchFileOrDirectory { return nil }
        throw error
      }
      let entry = try withCName(name) { name throws(Errno) -> EntryReply? in
        guard let found = try directory.lookup(name), found.isDirectory != isLast else { return nil }
        return try answer(found, name, in: parent, directory)
      }
      guard var entry else { return nil }
      if isLast {
        entry.timeout = 0
        return entry
      }
      passed.append(entry.node)
      parent = entry.node
    }
    return nil
  }
}

extension Entry {
  fileprivate var isDirectory: Bool { if case .directory = self { true } else { false } }
}
