import Glibc
import Posix

/// A directory of one layer: held open, or a folder of an archive.
public final class LayerDirectory: Sendable {
  /// What one layer has under a name.
  enum Found {
    case nothing
    case whiteout
    case file(FileStatus)
    case directory(LayerDirectory, FileStatus)
  }

  /// The layer's backing in the stack, 0 on top.
  public let layer: Int
  /// Which directory it is.
  public let identity: FileIdentity
  /// Where its entries are.
  enum Backing: Sendable {
    case descriptor(SharedDescriptor)
    /// The folder is known by its inode number, whatever the archive contains by now.
    case archive(ArchiveLayer)
  }
  let backing: Backing
  /// Whether the file system's directories record the inode numbers that stat(2) tells. Overlay, network and
  /// FUSE file systems need not.
  let recordsInodes: Bool
  private let covered: CoveredMountPoint?

  /// - Parameter parent: the directory that has it, if that is known.
  init(
    layer: Int, handle: SharedDescriptor, attributes: FileStatus, covered: CoveredMountPoint?,
    in parent: LayerDirectory? = nil
  ) {
    self.layer = layer
    if let parent, parent.identity.device == attributes.identity.device {
      recordsInodes = parent.recordsInodes
    } else {
      recordsInodes = Self.recordsInodes(handle)
    }
    self.identity = attributes.identity
    self.backing = .descriptor(handle)
    self.covered = covered
  }

  init(layer: Int, identity: FileIdentity, archive: ArchiveLayer) {
    self.layer = layer
    self.identity = identity
    self.backing = .archive(archive)
    recordsInodes = true
    covered = nil
  }

  /// Whether it is a folder of an archive.
  public var isInArchive: Bool { if case .archive = backing { true } else { false } }

  /// The attributes of the directory itself, as they are now.
  /// - Throws: ENOENT where the archive has no such folder any more.
  public func attributes() throws(Errno) -> FileStatus {
    switch backing {
    case .descriptor(let handle): return try handle.descriptor.attributes()
    case .archive(let archive): return try archive.folderAttributes(identity.inode)
    }
  }

  /// Looks a name up in this directory alone.
  /// - Parameter isLikelyDirectory: saves a look where it is one.
  func find(_ name: CName, isLikelyDirectory: Bool = false) throws(Errno) -> Found {
    switch backing {
    case .descriptor(let handle):
      if isLikelyDirectory, let found = try findDirectory(name, in: handle) { return found }
      return try find(name, in: handle)
    case .archive(let archive): return archive.find(name, in: identity.inode)
    }
  }

  /// Whether it has an entry of a name, of any kind.
  func contains(_ name: CName) throws(Errno) -> Bool {
    switch backing {
    case .descriptor(let handle): return try handle.descriptor.contains(name)
    case .archive(let archive): return archive.node(name, in: identity.inode) != nil
    }
  }

  /// - Returns: nil where it is no directory.
  private func findDirectory(_ name: CName, in handle: SharedDescriptor) throws(Errno) -> Found? {
    if let covered, covered.matches(identity, name) { return nil }
    do throws(Errno) {
      return try opened(SharedDescriptor(handle.descriptor.open(name, Self.directoryPathFlags)))
    } catch {
      if error == .noSuchFileOrDirectory { return .nothing }
      if error == .notDirectory || error == .tooManySymbolicLinkLevels || error == .fileNameTooLong {
        return nil
      }
      throw error
    }
  }

  /// A directory as a backing, and no link to one.
  private static let directoryPathFlags: OpenFlags = [.pathOnly, .directory, .noFollow]

  private func find(_ name: CName, in handle: SharedDescriptor) throws(Errno) -> Found {
    if let covered, covered.matches(identity, name) { return try opened(covered.beneath) }
    // The bound is only against someone who replaces it for ever.
    for _ in 0..<64 {
      guard
        let attributes = try Self.ifExists({ () throws(Errno) in try handle.descriptor.attributes(of: name) })
      else { return .nothing }
      if attributes.isOverlayWhiteout { return .whiteout }
      if !attributes.isDirectory { return .file(attributes) }
      do throws(Errno) {
        return try opened(SharedDescriptor(handle.descriptor.open(name, Self.directoryPathFlags)))
      } catch {
        // It was replaced between the two calls: look again at what is there now.
        if error != .notDirectory && error != .noSuchFileOrDirectory && error != .tooManySymbolicLinkLevels {
          throw error
        }
      }
    }
    throw .ioError
  }

  /// Opens an entry for reading its content, if it still is that file.
  /// - Throws: ENOENT when the name is gone; ESTALE when it is another file's by now.
  public func openFile(_ name: CName, identity: FileIdentity) throws(Errno) -> LayerFile {
    try open(name, identity: identity, [.read, .noFollow, .nonBlocking, .noControllingTerminal])
  }

  /// Opens an entry of any kind for its attributes, link target and xattrs, if it still is that file.
  /// - Throws: as `openFile`.
  public func openPath(_ name: CName, identity: FileIdentity) throws(Errno) -> LayerFile {
    try open(name, identity: identity, [.pathOnly, .noFollow])
  }

  /// The attributes of an entry of any kind, by this directory alone.
  /// - Throws: ENOENT without it.
  public func attributes(of name: CName) throws(Errno) -> FileStatus {
    if let covered, covered.matches(identity, name) { return try covered.beneath.descriptor.attributes() }
    switch backing {
    case .descriptor(let handle): return try handle.descriptor.attributes(of: name)
    case .archive(let archive):
      guard let (node, _) = archive.node(name, in: identity.inode) else { throw .noSuchFileOrDirectory }
      return archive.attributes(of: node)
    }
  }

  /// The attributes of an entry, if it still is that file.
  /// - Throws: as `openFile`.
  public func attributes(of name: CName, identity: FileIdentity) throws(Errno) -> FileStatus {
    if let covered, covered.matches(self.identity, name) { throw .staleFileHandle }
    let attributes = try attributes(of: name)
    if attributes.identity != identity { throw .staleFileHandle }
    return attributes
  }

  /// Runs the body with a path by which inotify(7) finds this directory; nil for a folder of an archive, which
  /// changes with the archive's file.
  public func withWatchPath<Result>(_ body: (CName) throws(Errno) -> Result) throws(Errno) -> Result? {
    guard case .descriptor(let handle) = backing else { return nil }
    return try handle.descriptor.withWatchPath(body)
  }

  /// Runs the body with a path by which inotify(7) finds an entry; nil in an archive.
  public func withWatchPath<Result>(
    of name: CName, _ body: (CName) throws(Errno) -> Result
  ) throws(Errno) -> Result? {
    guard case .descriptor(let handle) = backing else { return nil }
    return try handle.descriptor.withWatchPath(of: [UInt8](bytesOf: name), body)
  }

  /// The names on which this directory has a say: those of its entries, and those that its marks hide.
  public func affectedNames() throws(Errno) -> [[UInt8]] {
    var names: [[UInt8]] = []
    try forEachEntry { entry throws(Errno) in
      let name = Array(UnsafeRawBufferPointer(start: entry.name, count: entry.nameLength))
      names.append(WhiteoutMarkers.isMarker(entry.name) ? Array(name.dropFirst(4)) : name)
    }
    return names
  }

  /// The names that this directory's marks hide in the layers below.
  public func whiteoutNames() throws(Errno) -> Set<[UInt8]> {
    try SingleLayerDirectory(self, cutoff: nil).whiteouts
  }

  /// The value of one of the directory's own xattrs: as `Descriptor.extendedAttribute`.
  public func extendedAttribute(
    _ name: CName, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    guard case .descriptor(let handle) = backing else { throw .noData }
    return try handle.descriptor.extendedAttribute(name, into: buffer)
  }

  /// The names of the directory's own xattrs, each followed by NUL.
  public func extendedAttributeNames() throws(Errno) -> [UInt8] {
    guard case .descriptor(let handle) = backing else { return [] }
    return try handle.descriptor.extendedAttributeNames()
  }

  private func open(
    _ name: CName, identity: FileIdentity, _ flags: OpenFlags
  ) throws(Errno) -> LayerFile {
    if let covered, covered.matches(self.identity, name) { throw .staleFileHandle }
    switch backing {
    case .descriptor(let handle): return try Self.open(name, in: handle, identity, flags)
    case .archive(let archive):
      while true {
        guard let (node, index) = archive.node(name, in: self.identity.inode) else {
          throw .noSuchFileOrDirectory
        }
        if archive.identity(node.inode) != identity { throw .staleFileHandle }
        if let content = archive.content(of: node, in: index) { return LayerFile(content) }
      }
    }
  }

  private static func open(
    _ name: CName, in handle: SharedDescriptor, _ identity: FileIdentity, _ flags: OpenFlags
  ) throws(Errno) -> LayerFile {
    do throws(Errno) {
      let descriptor = try handle.descriptor.open(name, flags)
      let attributes = try descriptor.attributes()
      if attributes.identity != identity { throw .staleFileHandle }
      return LayerFile(descriptor, attributes)
    } catch {
      // A symbolic link or a socket took the name.
      if error == .tooManySymbolicLinkLevels || error == .noSuchAddressOrDevice { throw .staleFileHandle }
      throw error
    }
  }

  private func opened(_ handle: SharedDescriptor) throws(Errno) -> Found {
    let attributes = try handle.descriptor.attributes()
    return .directory(
      LayerDirectory(layer: layer, handle: handle, attributes: attributes, covered: covered, in: self),
      attributes)
  }

  /// The attributes, or nil where the layer has no such entry: also where its file system takes no name so
  /// long, or where this directory was removed meanwhile.
  private static func ifExists(
    _ read: () throws(Errno) -> FileStatus
  ) throws(Errno) -> FileStatus? {
    do throws(Errno) {
      return try read()
    } catch {
      if error == .noSuchFileOrDirectory || error == .notDirectory || error == .fileNameTooLong { return nil }
      throw error
    }
  }
}
