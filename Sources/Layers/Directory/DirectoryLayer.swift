import Glibc
import Posix

/// A layer that is a directory of this machine.
///
/// Everything goes through the descriptor of its root: one component at a time, no symbolic link followed,
/// so that nothing outside is ever reached, whatever is swapped underneath meanwhile.
public final class DirectoryLayer: Sendable {
  /// The absolute path by which the layer is named to users.
  public let path: [UInt8]
  /// Whether mounts inside the layer are out of sight (needs CAP_SYS_ADMIN; see `open`).
  public let isPrivateClone: Bool
  private let index: Int
  private let covered: CoveredMountPoint?
  private let opened: Locked<LayerDirectory>

  /// The directory that the layer is.
  public var root: LayerDirectory { opened.withLock { $0 } }

  /// Opens a layer.
  ///
  /// Where privileges allow, the layer's mount is cloned, private and read-only: what is mounted inside the
  /// layer, our own mount first of all, then shows as the plain directory beneath it. Elsewhere only our own
  /// mount is kept out, by `covered`.
  /// - Parameters:
  ///   - path: an absolute path; symbolic links in it are followed, here and never again.
  ///   - index: the layer's backing in the stack, 0 on top.
  ///   - covered: the mount point that must not be entered.
  ///   - clonesMount: false does without the clone, as if privileges were missing.
  /// - Throws: ENOENT, ENOTDIR, EACCES: as open(2) answers for the path.
  public init(
    path: [UInt8], index: Int, covered: CoveredMountPoint?, clonesMount: Bool = true
  ) throws(Errno) {
    self.path = path
    self.index = index
    let plain = try withCName(path) { name throws(Errno) in
      SharedDescriptor(try Descriptor.open(name, [.pathOnly, .directory]))
    }
    let (root, isClone) = try Self.root(plain, index, covered, clonesMount: clonesMount)
    isPrivateClone = isClone
    // Not kept in vain: it holds the directory, and an automount that it is would never be found idle.
    self.covered = isClone ? nil : covered
    opened = Locked(root)
  }

  /// Where a layer's path leads to, later.
  public enum ReopenResult: Sendable {
    /// To the directory that the layer is.
    case unchanged
    /// To another one, which the layer is from now on.
    case replaced
    /// To another mount: something was mounted there, or what was there is gone.
    case onOtherMount
  }

  /// Looks where the layer's path leads to now.
  /// - Parameter mount: the number of the mount that held it at the beginning.
  /// - Throws: ENOENT, ENOTDIR, EACCES: as open(2) answers for the path; ELOOP where a symbolic link lies on it
  ///   by now: the layer may not be led out of where it was.
  public func reopen(mount: Int) throws(Errno) -> ReopenResult {
    var holder = 0
    let plain = try withCName(path) { name throws(Errno) in
      SharedDescriptor(try Descriptor.openNoSymlinks(name, mount: &holder))
    }
    if holder != mount { return .onOtherMount }
    if try plain.descriptor.attributes().identity == root.identity { return .unchanged }
    let (fresh, isClone) = try Self.root(plain, index, covered, clonesMount: isPrivateClone)
    // Without the clone our own mount could be met.
    if isClone != isPrivateClone { throw .notPermitted }
    opened.withLock { $0 = fresh }
    return .replaced
  }

  private static func root(
    _ plain: SharedDescriptor, _ index: Int, _ covered: CoveredMountPoint?, clonesMount: Bool
  ) throws(Errno) -> (root: LayerDirectory, isClone: Bool) {
    var clone: SharedDescriptor?
    if clonesMount { clone = try? SharedDescriptor(plain.descriptor.cloneMount()) }
    let handle = clone ?? plain
    let root = LayerDirectory(
      layer: index, handle: handle, attributes: try handle.descriptor.attributes(),
      covered: clone == nil ? covered : nil)
    return (root, clone != nil)
  }

  /// Figures of the file system that holds the layer.
  public func statvfs() throws(Errno) -> statvfs { try root.statvfs() }
}

extension LayerDirectory {
  /// Figures of the file system that holds it, or its archive.
  func statvfs() throws(Errno) -> statvfs {
    switch backing {
    case .descriptor(let handle): try handle.descriptor.statvfs()
    case .archive(let layer): try layer.statvfs()
    }
  }

  /// The kind of file system, if changes on it can be made by another machine or process without this
  /// machine's inotify(7) telling; nil where it tells.
  public func unwatchableFileSystem() throws(Errno) -> String? {
    switch backing {
    case .descriptor(let handle): Self.unwatchableTypes[try handle.descriptor.fileSystemType()]
    case .archive(let layer): Self.unwatchableTypes[try layer.current.source.descriptor.fileSystemType()]
    }
  }

  /// Whether it is on a file system that lies over another one (overlayfs or eCryptfs, by their magic numbers
  /// of statfs(2)).
  public var isStacked: Bool {
    guard case .descriptor(let handle) = backing, let type = try? handle.descriptor.fileSystemType() else {
      return false
    }
    return type == 0x794C_7630 || type == 0xF15F
  }

  /// By the magic numbers of statfs(2).
  private static let unwatchableTypes: [Int: String] = [
    0x6969: "NFS", 0x517B: "SMB", 0xFF53_4D42: "CIFS", 0xFE53_4D42: "SMB2", 0x0102_1997: "9p",
    0x00C3_6400: "Ceph", 0x6573_5546: "FUSE", 0x5346_414F: "AFS", 0x7375_7245: "Coda", 0x564C: "NCP",
    0x0BD0_0BD0: "Lustre", 0x7461_636F: "OCFS2", 0x0116_1970: "GFS2", 0x6A65_6A62: "virtiofs",
    0x9FA0: "proc", 0x6265_6572: "sysfs",
  ]
}

/// The backing of our own mount, known before it is mounted.
///
/// A request thread that walked into its own mount would wait for itself; so the plain directory beneath
/// stands in wherever a layer without a private clone contains the mount point.
public final class CoveredMountPoint: Sendable {
  let device: UInt64
  let parentInode: UInt64
  let name: [UInt8]
  let beneath: SharedDescriptor

  /// Remembers a directory that is about to be mounted over.
  /// - Parameter path: its absolute path without symbolic links.
  /// - Returns: nil for `/`, which no layer can contain as an entry.
  public init?(path: [UInt8]) throws(Errno) {
    guard let slash = path.lastIndex(of: UInt8(ascii: "/")), slash + 1 < path.count else { return nil }
    let parent = slash == 0 ? [UInt8(ascii: "/")] : Array(path[..<slash])
    let attributes = try withCName(parent) { name throws(Errno) in
      try Descriptor.open(name, [.pathOnly, .directory]).attributes()
    }
    device = attributes.identity.device
    parentInode = attributes.identity.inode
    name = Array(path[(slash + 1)...])
    beneath = try withCName(path) { name throws(Errno) in
      SharedDescriptor(try Descriptor.open(name, [.pathOnly, .directory]))
    }
  }

  func matches(_ identity: FileIdentity, _ name: CName) -> Bool {
    guard identity.inode == parentInode, identity.device == device else { return false }
    for (index, byte) in self.name.enumerated() where UInt8(bitPattern: name[index]) != byte { return false }
    return name[self.name.count] == 0
  }
}
