import CLibrary
import Posix
import Synchronization

/// A layer that is a directory of this machine.
///
/// All access is relative to the descriptor of its root, one component at a time and without following
/// symbolic links, so that concurrent renames cannot lead outside the layer.
public final class DirectoryLayer: Sendable {
  /// The absolute path shown to users.
  public let path: [UInt8]
  /// Whether mounts inside the layer are invisible, which needs `CAP_SYS_ADMIN`.
  public let isPrivateClone: Bool
  /// Whether the root, and what is opened through it, can be written to.
  public let isWritable: Bool
  /// The directory in which its work folder is made; nil for its root.
  public let workDirectory: WorkDirectory?
  private let index: Int
  private let covered: CoveredMountPoint?
  /// As statfs(2) has it.
  private let fileSystemType: Int
  /// The folder of the view at which the layer is laid: its names from the root; none for the root itself.
  public let laidAt: [[UInt8]]
  private let opened: Locked<OpenedRoot>
  private let reopened = Atomic(false)
  private let absent: Atomic<Bool>
  /// Passes the calls on the layer.
  public let gate: LayerGate

  /// Whether the root, or whether there is one, has changed since a predecessor's record.
  public var wasReopened: Bool { reopened.load(ordering: .relaxed) }

  /// Whether the path leads nowhere: then the stack has no part of this layer. What is open of it stays readable.
  public var isAbsent: Bool { absent.load(ordering: .acquiring) }

  /// - Returns: whether that is new.
  public func setAbsent(_ isAbsent: Bool) -> Bool {
    if absent.exchange(isAbsent, ordering: .acquiringAndReleasing) == isAbsent { return false }
    reopened.store(true, ordering: .relaxed)
    return true
  }

  /// The directory at the root of the view.
  public var root: LayerDirectory {
    laidAt.isEmpty ? ownRoot : FoldersAbove(laidAt, .folder(opened)).directory(gate)
  }

  /// The root directory of the layer itself.
  public var ownRoot: LayerDirectory { opened.withLock { $0.directory } }

  /// Opens a layer.
  ///
  /// Where privileges allow, the layer's mount is cloned, private and read-only unless it is to be written to. Mounts
  /// inside the layer, first of all our own, then appear as the directories that they cover. Otherwise only our own
  /// mount is excluded, by `covered`.
  /// - Parameters:
  ///   - path: an absolute path; symbolic links in it are followed once, here.
  ///   - foldsNames: whether names are compared without case.
  ///   - workDirectory: the directory in which its work folder is made; nil for its root.
  ///   - isShared: whether other users may enter the mount.
  ///   - hidden: the names that the view hides.
  ///   - place: the folder of the view at which the layer is laid.
  /// - Throws: ENOENT, ENOTDIR, EACCES, as `open(2)`.
  public init(
    path: [UInt8], index: Int, covered: CoveredMountPoint?, clonesMount: Bool = true,
    isWritable: Bool = false, workDirectory: WorkDirectory? = nil, foldsNames: Bool = false,
    isShared: Bool = false, hidden: HiddenNames? = nil, at place: [[UInt8]] = []
  ) throws(Errno) {
    self.path = path
    laidAt = place
    (self.isWritable, self.workDirectory) = (isWritable, workDirectory)
    self.index = index
    let plain = try withCName(path) { name throws(Errno) in
      SharedDescriptor(try Descriptor.open(name, [.pathOnly, .directory]))
    }
    fileSystemType = try plain.descriptor.fileSystemType()
    gate = LayerGate(
      layer: index, isRemote: FileSystemType.isRemote(fileSystemType), foldsNames: foldsNames,
      identifiesByRights: isShared && !isWritable, hidden: hidden)
    let (root, isClone) = try Self.root(
      plain, gate, covered, clonesMount: clonesMount, isWritable: isWritable, workDirectory, place)
    isPrivateClone = isClone
    // A needless reference would keep the directory busy, so that an automount there would never expire.
    self.covered = isClone ? nil : covered
    opened = Locked(root)
    absent = Atomic(false)
  }

  /// A layer whose path does not exist yet. Until `reopen` finds it, the directory above stands in as its root.
  /// - Parameter path: an absolute path without symbolic links, as far as it exists.
  /// - Throws: as `open(2)`.
  public convenience init(
    absent path: [UInt8], index: Int, covered: CoveredMountPoint?, foldsNames: Bool = false,
    isShared: Bool = false, hidden: HiddenNames? = nil, at place: [[UInt8]] = []
  ) throws(Errno) {
    var parent = path
    while true {
      parent = Array(parent[..<(parent.lastIndex(of: UInt8(ascii: "/")) ?? 0)])
      do throws(Errno) {
        let above = try DirectoryLayer(
          path: parent.isEmpty ? [UInt8(ascii: "/")] : parent, index: index, covered: covered,
          foldsNames: foldsNames, isShared: isShared, hidden: hidden, at: place)
        self.init(absent: path, above, index: index, covered: covered)
        return
      } catch {
        if parent.isEmpty || error != .noSuchFileOrDirectory { throw error }
      }
    }
  }

  private init(absent path: [UInt8], _ above: DirectoryLayer, index: Int, covered: CoveredMountPoint?) {
    self.path = path
    self.index = index
    (isWritable, workDirectory) = (false, nil)
    (fileSystemType, gate, isPrivateClone) = (above.fileSystemType, above.gate, above.isPrivateClone)
    laidAt = above.laidAt
    self.covered = above.isPrivateClone ? nil : covered
    opened = Locked(above.opened.withLock { $0 })
    absent = Atomic(true)
  }

  /// What a successor must know of a root to go on with it without a call, which could block.
  public struct Root: BitwiseCopyable {
    /// When the predecessor opened it.
    let attributes: FileStatus
    let fileSystemType: Int
    let recordsInodes: Bool
    let isPrivateClone: Bool
    let isAbsent: Bool
  }

  /// The present root for a successor.
  /// - Throws: what statx(2) answers.
  public func rootForSuccessor() throws(Errno) -> (root: Root, file: CInt)? {
    let opened = opened.withLock { $0 }
    let present = opened.directory
    guard case .descriptor(let handle) = present.backing else { return nil }
    let root = Root(
      attributes: laidAt.isEmpty ? try handle.descriptor.attributes() : opened.attributes,
      fileSystemType: fileSystemType,
      recordsInodes: present.recordsInodes, isPrivateClone: isPrivateClone, isAbsent: isAbsent)
    return (root, handle.descriptor.rawValue)
  }

  /// Goes on with a root that a predecessor opened.
  /// - Parameter file: open in both processes.
  public init(
    path: [UInt8], index: Int, covered: CoveredMountPoint?, root: Root, file: consuming Descriptor,
    isWritable: Bool = false, workDirectory: WorkDirectory? = nil, foldsNames: Bool = false,
    isShared: Bool = false, hidden: HiddenNames? = nil, at place: [[UInt8]] = []
  ) {
    self.path = path
    laidAt = place
    (self.isWritable, self.workDirectory) = (isWritable, workDirectory)
    self.index = index
    isPrivateClone = root.isPrivateClone
    self.covered = root.isPrivateClone ? nil : covered
    fileSystemType = root.fileSystemType
    gate = LayerGate(
      layer: index, isRemote: FileSystemType.isRemote(fileSystemType), foldsNames: foldsNames,
      identifiesByRights: isShared && !isWritable, hidden: hidden)
    let directory = LayerDirectory(
      gate: gate, handle: SharedDescriptor(file), attributes: root.attributes, covered: self.covered,
      recordsInodes: root.recordsInodes, place: hidden?.root.entering(place))
    opened = Locked(OpenedRoot(directory: directory, attributes: root.attributes))
    absent = Atomic(root.isAbsent)
  }

  /// The result of `reopen`.
  public enum ReopenResult: Sendable {
    /// The path leads to the present root.
    case unchanged
    /// The path leads to another directory, which is the root from now on.
    case replaced
    /// The path leads to another mount: one was mounted over it, or its own was unmounted.
    case onOtherMount
  }

  /// Resolves the layer's path again.
  /// - Parameter mount: the id of the mount that contains the layer.
  /// - Throws: ENOENT, ENOTDIR, EACCES, as `open(2)`; ELOOP for a symbolic link on the path; EPERM if the layer takes changes,
  ///   and the directory gives other users rights that the former one does not.
  public func reopen(mount: Int) throws(Errno) -> ReopenResult {
    try gate.call { () throws(Errno) in try reopenUngated(mount: mount) }
  }

  private func reopenUngated(mount: Int) throws(Errno) -> ReopenResult {
    var holder = 0
    let plain = try withCName(path) { name throws(Errno) in
      SharedDescriptor(try Descriptor.openNoSymlinks(name, mount: &holder))
    }
    if holder != mount { return .onOtherMount }
    if try plain.descriptor.attributes().identity == ownRoot.identity { return .unchanged }
    if isWritable, try !isAsTrusted(plain.descriptor) { throw .notPermitted }
    let (fresh, isClone) = try Self.root(
      plain, gate, covered, clonesMount: isPrivateClone, isWritable: isWritable, workDirectory, laidAt)
    // Without the clone the layer could lead into our own mount.
    if isClone != isPrivateClone { throw .notPermitted }
    opened.withLock { $0 = fresh }
    reopened.store(true, ordering: .relaxed)
    return .replaced
  }

  /// Whether a directory that took the root's place can be written to by the same users only.
  private func isAsTrusted(_ directory: borrowing Descriptor) throws(Errno) -> Bool {
    guard let writers = try DirectoryWriters.of(directory, besides: geteuid()) else { return true }
    guard case .descriptor(let former) = ownRoot.backing else { return false }
    return try DirectoryWriters.of(former.descriptor, besides: geteuid()) == writers
  }

  private static func root(
    _ plain: SharedDescriptor, _ gate: LayerGate, _ covered: CoveredMountPoint?, clonesMount: Bool,
    isWritable: Bool, _ work: WorkDirectory?, _ place: [[UInt8]]
  ) throws(Errno) -> (root: OpenedRoot, isClone: Bool) {
    var clone: SharedDescriptor?
    if clonesMount {
      clone = try? SharedDescriptor(Self.clone(plain.descriptor, isWritable: isWritable, work))
    }
    let handle = clone ?? plain
    let attributes = try handle.descriptor.attributes()
    let root = LayerDirectory(
      gate: gate, handle: handle, attributes: attributes, covered: clone == nil ? covered : nil,
      place: gate.hidden?.root.entering(place))
    return (OpenedRoot(directory: root, attributes: attributes), clone != nil)
  }

  /// Clones the mount below a root; where there is a work directory, below the directory that contains both.
  private static func clone(
    _ root: borrowing Descriptor, isWritable: Bool, _ work: WorkDirectory?
  ) throws(Errno) -> Descriptor {
    guard let work else { return try root.cloneMount(isWritable: isWritable) }
    let above = try withCName(work.ancestor) { path throws(Errno) in
      try root.open(path, [.pathOnly, .directory])
    }
    let clone = try above.cloneMount(isWritable: isWritable)
    let cloned = try withCName(work.layer) { path throws(Errno) in
      try clone.open(path, [.pathOnly, .directory, .noFollow])
    }
    // The root is that of another mount.
    if try cloned.attributes().identity != root.attributes().identity { throw .crossDeviceLink }
    return cloned
  }

  /// Calls `statvfs(3)` for the file system that holds the layer.
  public func statvfs() throws(Errno) -> statvfs { try ownRoot.statvfs() }

  /// The name of the root's file system if it can change without inotify(7) events on this machine.
  var unwatchableFileSystem: String? { FileSystemType.unwatchable[fileSystemType] }

  /// Whether the file system is stacked on another one.
  public var isStacked: Bool { FileSystemType.stacked.contains(fileSystemType) }
}

extension LayerDirectory {
  /// Calls `statvfs(3)` for the file system that holds the directory or its archive.
  func statvfs() throws(Errno) -> statvfs {
    switch backing {
    case .descriptor(let handle): try gate.call { () throws(Errno) in try handle.descriptor.statvfs() }
    case .archive(let layer): try layer.statvfs()
    case .above(let folders): try folders.statvfs()
    }
  }

  /// The name of the file system if it can change without inotify(7) events on this machine; nil otherwise.
  public func unwatchableFileSystem() throws(Errno) -> String? {
    switch backing {
    case .descriptor(let handle):
      FileSystemType.unwatchable[
        try gate.call { () throws(Errno) in try handle.descriptor.fileSystemType() }]
    // The server is asked for changes.
    case .archive(let layer) where layer.remote != nil: nil
    case .archive(let layer):
      FileSystemType.unwatchable[
        try gate.call { () throws(Errno) in try layer.current.source.descriptor.fileSystemType() }]
    case .above: nil
    }
  }
}

/// Our own mount point, recorded before it is mounted over.
///
/// A worker thread that entered our own mount would wait for itself. So wherever a layer without a private
/// clone contains the mount point, the directory beneath replaces it. Where the mount shows at another place, by a bind
/// mount or through another mount namespace, entries with its device number are refused.
public final class CoveredMountPoint: Sendable {
  let device: UInt64
  let parentInode: UInt64
  let name: [UInt8]
  let beneath: SharedDescriptor
  private let ownDevice = Atomic<UInt64>(0)

  /// Records a directory that is about to be mounted over.
  /// - Parameter path: its absolute path without symbolic links.
  /// - Returns: nil for `/`, which no layer can contain as an entry.
  public convenience init?(path: [UInt8]) throws(Errno) {
    let directory = try withCName(path) { name throws(Errno) in
      try Descriptor.open(name, [.pathOnly, .directory])
    }
    try self.init(path: path, beneath: directory)
  }

  /// - Parameter beneath: the directory, which may be mounted over by now.
  /// - Returns: as for `init(path:)`.
  public init?(path: [UInt8], beneath directory: consuming Descriptor) throws(Errno) {
    guard let slash = path.lastIndex(of: UInt8(ascii: "/")), slash + 1 < path.count else { return nil }
    let parent = slash == 0 ? [UInt8(ascii: "/")] : Array(path[..<slash])
    let attributes = try withCName(parent) { name throws(Errno) in
      try Descriptor.open(name, [.pathOnly, .directory]).attributes()
    }
    device = attributes.identity.device
    parentInode = attributes.identity.inode
    name = Array(path[(slash + 1)...])
    beneath = SharedDescriptor(directory)
  }

  /// The number of the descriptor of the directory beneath the mount.
  public var directory: CInt { beneath.descriptor.rawValue }

  /// Records the device number of the mount, once it is mounted.
  public func setDevice(_ device: UInt64) { ownDevice.store(device, ordering: .relaxed) }

  func isOwnMount(_ device: UInt64) -> Bool {
    let own = ownDevice.load(ordering: .relaxed)
    return own != 0 && own == device
  }

  func matches(_ identity: FileIdentity, _ name: CName) -> Bool {
    identity.inode == parentInode && identity.device == device && strlen(name) == self.name.count
      && memcmp(name, self.name, self.name.count) == 0
  }
}
