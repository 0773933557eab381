import CLibrary
import Posix
import Synchronization

/// A directory of one layer: an open descriptor, or a folder of an archive.
public final class LayerDirectory: Sendable {
  enum Found {
    case nothing
    case whiteout
    case file(FileStatus)
    case directory(LayerDirectory, FileStatus)
  }

  /// The layer's index in the stack, 0 on top.
  public let layer: Int
  /// Its device and inode number.
  public let identity: FileIdentity
  enum Backing: Sendable {
    case descriptor(SharedDescriptor)
    /// The folder is found by its inode number in the archive's present index.
    case archive(ArchiveLayer)
    /// It leads to a layer that is laid at a folder of the view.
    case above(FoldersAbove)
  }
  let backing: Backing
  /// Passes the calls on the directory.
  public let gate: LayerGate
  /// Whether `d_ino` of its entries is `st_ino` of `stat(2)`. It need not be on overlay, network and FUSE
  /// file systems.
  let recordsInodes: Bool
  let covered: CoveredMountPoint?
  /// nil if names are compared by bytes.
  let spellings: SpellingIndex?
  /// Where the directory is, for the names that the view hides; nil if it hides none.
  let place: HiddenNames.Place?
  /// The raw value of the directory's `OverlayMarks`, once they have been read.
  let marks = Atomic(LayerDirectory.unreadMarks)

  convenience init(
    gate: LayerGate, handle: SharedDescriptor, attributes: FileStatus, covered: CoveredMountPoint?,
    in parent: LayerDirectory? = nil, place: HiddenNames.Place? = nil
  ) {
    let isOnSameDevice = parent?.identity.device == attributes.identity.device
    let inherited = isOnSameDevice ? parent?.recordsInodes : nil
    self.init(
      gate: gate, handle: handle, attributes: attributes, covered: covered,
      recordsInodes: inherited ?? Self.recordsInodes(handle), place: place)
  }

  /// Makes no call.
  init(
    gate: LayerGate, handle: SharedDescriptor, attributes: FileStatus, covered: CoveredMountPoint?,
    recordsInodes: Bool, place: HiddenNames.Place? = nil
  ) {
    layer = gate.layer
    self.place = place
    self.gate = gate
    self.recordsInodes = recordsInodes
    self.identity = attributes.identity
    self.backing = .descriptor(handle)
    self.covered = covered
    spellings = gate.foldsNames ? SpellingIndex() : nil
  }

  init(layer: Int, identity: FileIdentity, archive: ArchiveLayer, place: HiddenNames.Place?) {
    self.layer = layer
    self.place = place
    gate = archive.gate
    self.identity = identity
    self.backing = .archive(archive)
    recordsInodes = true
    covered = nil
    spellings = gate.foldsNames ? SpellingIndex() : nil
  }

  /// - Parameter folders: the one that this directory is.
  init(above folders: FoldersAbove, _ gate: LayerGate, identity: FileIdentity, place: HiddenNames.Place?) {
    layer = gate.layer
    self.place = place
    self.gate = gate
    self.identity = identity
    self.backing = .above(folders)
    recordsInodes = true
    covered = nil
    spellings = gate.foldsNames ? SpellingIndex() : nil
  }

  /// Whether the directory is none of its layer, but leads to that: the layer is laid at a folder of the view.
  public var isAboveLayer: Bool { if case .above = backing { true } else { false } }

  /// Whether the directory is a folder of an archive.
  public var isInArchive: Bool { if case .archive = backing { true } else { false } }

  /// The present attributes of the directory.
  /// - Throws: ENOENT if the archive no longer has the folder.
  public func attributes() throws(Errno) -> FileStatus {
    switch backing {
    case .descriptor(let handle):
      return try gate.call { () throws(Errno) in try handle.descriptor.attributes() }
    case .archive(let archive): return try archive.folderAttributes(identity.inode)
    case .above(let folders): return try folders.attributes()
    }
  }

  /// Looks a name up in this directory alone.
  /// - Parameter isLikelyDirectory: saves a system call if the entry is a directory.
  func find(_ name: CName, isLikelyDirectory: Bool = false) throws(Errno) -> Found {
    let found = try findExact(name, isLikelyDirectory: isLikelyDirectory)
    guard let spellings else { return found }
    switch found {
    case .file, .directory: return found
    case .nothing, .whiteout: return try findFolded(name, spellings, isLikelyDirectory: isLikelyDirectory)
    }
  }

  /// Finds an entry by its own spelling.
  func findExact(_ name: CName, isLikelyDirectory: Bool) throws(Errno) -> Found {
    if let place, place.hides(name) { return .nothing }
    switch backing {
    case .descriptor(let handle):
      return try gate.call { () throws(Errno) in
        if isLikelyDirectory, let found = try findDirectory(name, in: handle) { return found }
        return try find(name, in: handle)
      }
    case .archive(let archive): return archive.find(name, in: identity.inode, place: place)
    case .above(let folders): return try folders.find(name, in: self)
    }
  }

  /// Whether there is an entry of any kind, whiteouts included.
  func contains(_ name: CName) throws(Errno) -> Bool {
    switch backing {
    case .descriptor(let handle):
      return try gate.call { () throws(Errno) in try handle.descriptor.contains(name) }
    case .archive(let archive): return archive.node(name, in: identity.inode) != nil
    case .above(let folders): return folders.has(name)
    }
  }

  /// - Returns: nil if the entry is not a directory.
  private func findDirectory(_ name: CName, in handle: SharedDescriptor) throws(Errno) -> Found? {
    if let covered, covered.matches(identity, name) { return nil }
    do throws(Errno) {
      return try opened(
        SharedDescriptor(handle.descriptor.open(name, Self.directoryPathFlags)), name, in: handle)
    } catch {
      if error == .noSuchFileOrDirectory { return .nothing }
      if error == .notDirectory || error == .tooManySymbolicLinkLevels || error == .fileNameTooLong {
        return nil
      }
      throw error
    }
  }

  private static let directoryPathFlags: OpenFlags = [.pathOnly, .directory, .noFollow]

  private func find(_ name: CName, in handle: SharedDescriptor) throws(Errno) -> Found {
    if let covered, covered.matches(identity, name) {
      return found(name, covered.beneath, try outerAttributes(of: covered.beneath.descriptor))
    }
    // The bound guards against a name that is replaced endlessly.
    for _ in 0..<64 {
      let attributes: FileStatus
      do throws(Errno) { attributes = try outerAttributes(of: name, in: handle) } catch {
        // ENOTDIR: the directory was removed.
        if error == .noSuchFileOrDirectory || error == .notDirectory || error == .fileNameTooLong {
          return .nothing
        }
        throw error
      }
      if try isWhiteout(name, attributes, in: handle) { return .whiteout }
      if !attributes.isDirectory {
        try refuseMetacopy(name, attributes, in: handle)
        return .file(attributes)
      }
      do throws(Errno) {
        return try opened(
          SharedDescriptor(handle.descriptor.open(name, Self.directoryPathFlags)), name, in: handle)
      } catch {
        // It was replaced between the two calls.
        if error != .notDirectory && error != .noSuchFileOrDirectory && error != .tooManySymbolicLinkLevels {
          throw error
        }
      }
    }
    throw .ioError
  }

  /// Opens a file for reading, if the name still has the given identity.
  /// - Throws: ENOENT if the name does not exist; ESTALE if it has another identity.
  public func openFile(_ name: CName, identity: FileIdentity) throws(Errno) -> LayerFile {
    if identity.isMergedTable { return try openTable(identity) }
    return try open(name, identity: identity, [.read, .noFollow, .nonBlocking, .noControllingTerminal]).file
  }

  /// Opens a file for writing, if the name still has the given identity; with `O_APPEND` if it can only be appended to.
  /// - Returns: the file and its present attributes.
  /// - Throws: as `openFile`; ETXTBSY, EACCES, and other errors of open(2).
  public func openFileForWriting(
    _ name: CName, identity: FileIdentity
  ) throws(Errno) -> (file: LayerFile, attributes: FileStatus) {
    let flags: OpenFlags = [.write, .noFollow, .nonBlocking, .noControllingTerminal]
    do throws(Errno) { return try open(name, identity: identity, flags) } catch {
      if error != .notPermitted { throw error }
      return try open(name, identity: identity, flags.union(.append))
    }
  }

  /// Opens an entry of any kind with `O_PATH`, if the name still has the given identity.
  /// - Throws: as `openFile`.
  public func openPath(_ name: CName, identity: FileIdentity) throws(Errno) -> LayerFile {
    if identity.isMergedTable { return try openTable(identity) }
    return try open(name, identity: identity, [.pathOnly, .noFollow]).file
  }

  /// The attributes of an entry of any kind.
  /// - Throws: ENOENT if it does not exist.
  public func attributes(of name: CName) throws(Errno) -> FileStatus {
    try withSpelling(of: name) { name throws(Errno) in
      let attributes = try attributesExact(of: name)
      if spellings != nil, attributes.isWhiteoutDevice { throw .noSuchFileOrDirectory }
      return attributes
    }
  }

  /// The attributes of an entry or whiteout of this very spelling.
  /// - Throws: ENOENT if it does not exist.
  public func attributesExact(of name: CName) throws(Errno) -> FileStatus {
    if let covered, covered.matches(identity, name) { return try covered.beneath.descriptor.attributes() }
    switch backing {
    case .descriptor(let handle):
      return try gate.call { () throws(Errno) in
        let attributes = try outerAttributes(of: name, in: handle)
        try refuseMetacopy(name, attributes, in: handle)
        return attributes
      }
    case .archive(let archive):
      guard let (node, index) = archive.node(name, in: identity.inode) else { throw .noSuchFileOrDirectory }
      return archive.attributes(of: node, in: index)
    case .above(let folders):
      guard folders.has(name) else { throw .noSuchFileOrDirectory }
      return try folders.next(in: self).attributes()
    }
  }

  /// The attributes of an entry, if the name still has the given identity.
  /// - Throws: as `openFile`.
  public func attributes(of name: CName, identity: FileIdentity) throws(Errno) -> FileStatus {
    if identity.isMergedTable { return try table(identity).status }
    if let covered, covered.matches(self.identity, name) { throw .staleFileHandle }
    return try withSpelling(of: name) { name throws(Errno) in
      let attributes = try attributesExact(of: name)
      if attributes.identity != identity { throw .staleFileHandle }
      return attributes
    }
  }

  /// Calls the body with a path to watch this directory by inotify(7); returns nil for a folder of an
  /// archive.
  public func withWatchPath<Result>(_ body: (CName) throws(Errno) -> Result) throws(Errno) -> Result? {
    guard case .descriptor(let handle) = backing else { return nil }
    return try gate.call { () throws(Errno) in try handle.descriptor.withWatchPath(body) }
  }

  /// Calls the body with a path to watch an entry by inotify(7), and whether it is a link in procfs that has to be
  /// followed; returns nil in an archive.
  public func withWatchPath<Result>(
    of name: CName, _ body: (CName, _ follows: Bool) throws(Errno) -> Result
  ) throws(Errno) -> Result? {
    guard case .descriptor(let handle) = backing else { return nil }
    return try withSpelling(of: name) { name throws(Errno) in
      try gate.call { () throws(Errno) in
        if covered != nil { return try withOuterWatchPath(of: name, in: handle, body) }
        return try handle.descriptor.withWatchPath(of: [UInt8](bytesOf: name)) { path throws(Errno) in
          try body(path, false)
        }
      }
    }
  }

  /// The names that this directory affects: those of its entries and of its whiteouts.
  public func affectedNames() throws(Errno) -> [[UInt8]] {
    var names: [[UInt8]] = []
    try forEachEntry { entry throws(Errno) in
      let name = Array(UnsafeRawBufferPointer(start: entry.name, count: entry.nameLength))
      names.append(WhiteoutMarker.name(concernedBy: name))
    }
    return names
  }

  /// The names of the whiteouts.
  public func whiteoutNames() throws(Errno) -> Set<[UInt8]> {
    try SingleLayerDirectory(self, cutoff: nil).whiteouts
  }

  private func open(
    _ name: CName, identity: FileIdentity, _ flags: OpenFlags
  ) throws(Errno) -> (file: LayerFile, attributes: FileStatus) {
    try withSpelling(of: name) { name throws(Errno) in try openExact(name, identity: identity, flags) }
  }

  private func openExact(
    _ name: CName, identity: FileIdentity, _ flags: OpenFlags
  ) throws(Errno) -> (file: LayerFile, attributes: FileStatus) {
    if let covered, covered.matches(self.identity, name) { throw .staleFileHandle }
    switch backing {
    case .descriptor(let handle):
      return try gate.call { () throws(Errno) in try open(name, in: handle, identity, flags) }
    case .archive(let archive):
      while true {
        guard let (node, index) = archive.node(name, in: self.identity.inode) else {
          throw .noSuchFileOrDirectory
        }
        if archive.identity(node.inode) != identity { throw .staleFileHandle }
        if let content = archive.content(of: node, in: index) {
          return (LayerFile(content), content.attributes)
        }
      }
    // Their entries are directories.
    case .above(let folders): throw folders.has(name) ? .staleFileHandle : .noSuchFileOrDirectory
    }
  }

  private func open(
    _ name: CName, in handle: SharedDescriptor, _ identity: FileIdentity, _ flags: OpenFlags
  ) throws(Errno) -> (file: LayerFile, attributes: FileStatus) {
    do throws(Errno) {
      let descriptor = try outerOpen(name, in: handle, identity, flags)
      let attributes = try outerAttributes(of: descriptor)
      if attributes.identity != identity { throw .staleFileHandle }
      return (LayerFile(descriptor, attributes, gate), attributes)
    } catch {
      // The name became a symbolic link or a socket.
      if error == .tooManySymbolicLinkLevels || error == .noSuchAddressOrDevice { throw .staleFileHandle }
      throw error
    }
  }

  private func opened(
    _ handle: SharedDescriptor, _ name: CName, in parent: SharedDescriptor
  ) throws(Errno) -> Found {
    let attributes = try outerAttributes(of: handle.descriptor)
    try refuseRedirect(name, handle, in: parent)
    return found(name, handle, attributes)
  }

  private func found(_ name: CName, _ handle: SharedDescriptor, _ attributes: FileStatus) -> Found {
    .directory(
      LayerDirectory(
        gate: gate, handle: handle, attributes: attributes, covered: covered, in: self,
        place: place?.entering(name)),
      attributes)
  }
}
