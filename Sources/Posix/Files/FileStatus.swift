import CLinux
import CLibrary

/// The result of statx(2).
public struct FileStatus: Sendable, Equatable, BitwiseCopyable {
  /// Device, inode number and birth time.
  public var identity: FileIdentity
  /// `st_mode`: type and permission bits.
  public var mode: UInt32
  /// `st_uid`.
  public var owner: UInt32
  /// `st_gid`.
  public var group: UInt32
  /// `st_nlink`.
  public var links: UInt32
  /// `st_size`, in bytes.
  public var size: UInt64
  /// `st_blocks`, in units of 512 bytes.
  public var blocks: UInt64
  /// `st_blksize`, in bytes.
  public var blockSize: UInt32
  /// Whether it has the flag `i` of chattr(1): it must not be changed, renamed, removed or linked.
  public private(set) var isImmutable = false
  /// Whether it has the flag `a` of chattr(1): a file can only be appended to, entries only added to a directory.
  public private(set) var isAppendOnly = false
  /// The CRC-32 of an archive entry's content, as the archive has it; 0 if it is unknown, and for all other files.
  public var checksum: UInt32 = 0
  /// `st_rdev`.
  public var rdev: UInt64
  /// `st_atim`.
  public var accessed: TimeSpec
  /// `st_mtim`.
  public var modified: TimeSpec
  /// `st_ctim`.
  public var changed: TimeSpec

  /// The file type; nil if unknown.
  @inlinable public var kind: FileKind? { FileKind(rawValue: mode & 0o170000) }
  /// These attributes with an identity that tells files of different rights apart where the file system records no birth
  /// times. A directory's identity stays as it is.
  public var identifiedByRights: FileStatus {
    var status = self
    if !isDirectory { status.identity.distinguish(owner: owner, group: group, permissions: mode & 0o7777) }
    return status
  }

  /// Whether it is a directory.
  @inlinable public var isDirectory: Bool { mode & 0o170000 == FileKind.directory.rawValue }
  /// Whether it is a regular file.
  @inlinable public var isRegular: Bool { mode & 0o170000 == FileKind.regular.rawValue }

  /// The attributes of a synthetic regular file.
  public init(
    regularFile permissions: UInt32, owner: UInt32, group: UInt32, size: UInt64, modified: TimeSpec
  ) {
    identity = FileIdentity(device: 0, inode: 0, born: modified)
    mode = FileKind.regular.rawValue | permissions
    (self.owner, self.group, self.size) = (owner, group, size)
    (links, blocks, blockSize, rdev) = (1, size / 512 + (size % 512 == 0 ? 0 : 1), 4096, 0)
    (accessed, self.modified, changed) = (modified, modified, modified)
  }

  /// The attributes of a synthetic directory.
  public init(
    directory permissions: UInt32, owner: UInt32, group: UInt32, modified: TimeSpec, changed: TimeSpec
  ) {
    self.init(regularFile: permissions, owner: owner, group: group, size: 0, modified: modified)
    self.changed = changed
    mode = FileKind.directory.rawValue | permissions
  }

  /// The attributes of an archive entry.
  public init(
    identity: FileIdentity, mode: UInt32, owner: UInt32, group: UInt32, size: UInt64, modified: TimeSpec
  ) {
    self.init(
      regularFile: 0, owner: owner, group: group, size: size, modified: modified)
    self.identity = identity
    self.mode = mode
  }

  init(_ raw: linux_attributes) {
    identity = FileIdentity(
      device: raw.device, inode: raw.inode,
      born: raw.has_birth ? TimeSpec(raw.born) : TimeSpec(seconds: 0, nanoseconds: 0))
    mode = raw.mode
    owner = raw.owner
    group = raw.group
    links = raw.links
    size = raw.size
    blocks = raw.blocks
    blockSize = raw.block_size
    (isImmutable, isAppendOnly) = (raw.is_immutable, raw.is_append_only)
    rdev = raw.rdev
    accessed = TimeSpec(raw.accessed)
    modified = TimeSpec(raw.modified)
    changed = TimeSpec(raw.changed)
  }
}
