import Posix
import RemoteFiles

/// Where an archive is: in a directory, or on a server.
enum ArchiveLocation: Sendable {
  /// The directory that holds it, and its name there.
  case folder(Locked<SharedDescriptor>, name: [UInt8])
  case server(RemoteFile)

  /// - Parameter path: the absolute path of the archive, or its URL.
  init(_ path: [UInt8], _ settings: RemoteSettings) throws(ArchiveError) {
    if RemoteURL.isURL(path) {
      guard let url = RemoteURL(path) else { throw .unreadable(.invalidArgument) }
      do throws(RemoteFault) { self = .server(try RemoteFile(url, settings)) } catch {
        throw ArchiveError(error)
      }
      return
    }
    let slash = path.lastIndex(of: EntryName.slash) ?? 0
    do throws(Errno) {
      let folder = try withCName(Array(path[...slash])) { name throws(Errno) in
        SharedDescriptor(try Descriptor.open(name, [.pathOnly, .directory]))
      }
      self = .folder(Locked(folder), name: Array(path[(slash + 1)...]))
    } catch { throw .unreadable(error) }
  }

  var remote: RemoteFile? { if case .server(let remote) = self { remote } else { nil } }

  /// The present attributes of the archive's file.
  func attributes(_ gate: LayerGate) throws(Errno) -> FileStatus {
    switch self {
    case .server(let remote): return try remote.attributes()
    case .folder(let parent, let name):
      let folder = parent.withLock { $0 }
      return try gate.call { () throws(Errno) in
        try withCName(name) { name throws(Errno) in try folder.descriptor.attributes(of: name) }
      }
    }
  }

  /// Opens the present state.
  /// - Parameter path: by which a file is opened, through symbolic links; nil for its name in the directory.
  func source(path: [UInt8]? = nil, generation: UInt32) throws(ArchiveError) -> ArchiveSource {
    switch self {
    case .server(let remote): return try ArchiveSource(remote, generation: generation)
    case .folder(let parent, let name):
      if let path { return try ArchiveSource(path: path, generation: generation) }
      let folder = parent.withLock { $0 }
      return try ArchiveSource(copy: Self.open(name, in: folder), generation: generation)
    }
  }

  private static func open(
    _ name: [UInt8], in folder: SharedDescriptor
  ) throws(ArchiveError) -> SharedDescriptor {
    do throws(Errno) {
      return try withCName(name) { name throws(Errno) in
        SharedDescriptor(
          try folder.descriptor.open(name, [.read, .noFollow, .nonBlocking, .noControllingTerminal]))
      }
    } catch { throw .unreadable(error) }
  }

  /// Opens the directory again by its path.
  /// - Parameters:
  ///   - path: of the archive.
  ///   - mount: the id of the mount that contained the directory initially.
  /// - Returns: whether it is another directory now.
  func reopenFolder(of path: [UInt8], mount: Int) -> Bool {
    guard case .folder(let parent, _) = self else { return false }
    let slash = path.lastIndex(of: EntryName.slash) ?? 0
    var holder = 0
    let found = try? withCName(Array(path[...slash])) { name throws(Errno) in
      SharedDescriptor(try Descriptor.openNoSymlinks(name, mount: &holder))
    }
    guard let found, holder == mount else { return false }
    return parent.withLock { parent in
      let isSame =
        (try? parent.descriptor.attributes().identity) == (try? found.descriptor.attributes().identity)
      parent = found
      return !isSame
    }
  }

  /// - Throws: EOPNOTSUPP for an archive on a server.
  func withWatchPath<Result>(_ body: (CName) throws(Errno) -> Result) throws(Errno) -> Result {
    guard case .folder(let parent, let name) = self else { throw .notSupported }
    let folder = parent.withLock { $0 }
    return try folder.descriptor.withWatchPath(of: name, body)
  }
}
