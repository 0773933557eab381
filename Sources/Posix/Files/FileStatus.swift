import CLinux
import Glibc

/// A moment: seconds and nanoseconds since the epoch.
public struct TimeSpec: Hashable, Sendable, Comparable {
  /// Seconds since 1970-01-01 00:00 UTC; negative before.
  public var seconds: Int64
  /// Nanoseconds after that second, 0..<1,000,000,000.
  public var nanoseconds: UInt32

  /// This moment.
  public static var now: TimeSpec {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return TimeSpec(seconds: Int64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec))
  }

  /// The time since the machine started: it only grows, whoever sets the clock.
  public static var monotonic: TimeSpec {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return TimeSpec(seconds: Int64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec))
  }

  /// The same time in nanoseconds.
  public static var monotonicNanoseconds: UInt64 {
    let time = monotonic
    return UInt64(time.seconds) * 1_000_000_000 + UInt64(time.nanoseconds)
  }

  /// How much later it is than another one, in whole milliseconds; 0 if it is earlier.
  public func milliseconds(since other: TimeSpec) -> CInt {
    let nanoseconds = Int64(nanoseconds) - Int64(other.nanoseconds)
    return CInt(clamping: max(0, (seconds - other.seconds) * 1000 + nanoseconds / 1_000_000))
  }

  /// The whole moment in microseconds.
  public var microseconds: Int64 { seconds * 1_000_000 + Int64(nanoseconds / 1000) }

  /// A moment that is so much later.
  public func advanced(byMilliseconds milliseconds: CInt) -> TimeSpec {
    let nanoseconds = Int64(self.nanoseconds) + Int64(milliseconds) * 1_000_000
    return TimeSpec(
      seconds: seconds + nanoseconds / 1_000_000_000, nanoseconds: UInt32(nanoseconds % 1_000_000_000))
  }

  /// The moment of these parts.
  @inlinable public init(seconds: Int64, nanoseconds: UInt32) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  /// Whether the left moment is earlier.
  @inlinable public static func < (left: TimeSpec, right: TimeSpec) -> Bool {
    (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
  }
}

/// What kind of file an entry is; the raw value is the type's bits of st_mode.
public enum FileKind: UInt32, Sendable {
  case fifo = 0o010000
  case characterDevice = 0o020000
  case directory = 0o040000
  case blockDevice = 0o060000
  case regular = 0o100000
  case symbolicLink = 0o120000
  case socket = 0o140000
}

/// Which file it is: equal for the hard links of one file, different for a file that took a freed inode
/// number (where the file system records births).
///
/// It is kept for every file that is known, and so compactly: the kernel's device numbers have 32 bits, and a
/// birth is kept in nanoseconds, as an Int64 that turns over every 584 years.
public struct FileIdentity: Hashable, Sendable {
  /// The inode number in its file system.
  public let inode: UInt64
  private let birth: Int64
  private let shortDevice: UInt32

  /// The device number of the file system.
  public var device: UInt64 { UInt64(shortDevice) }

  /// The identity of these parts.
  /// - Parameter born: when the inode was made; the epoch where the file system does not say.
  public init(device: UInt64, inode: UInt64, born: TimeSpec) {
    self.inode = inode
    birth = born.seconds &* 1_000_000_000 &+ Int64(born.nanoseconds)
    shortDevice = UInt32(truncatingIfNeeded: device)
  }
}

/// What statx(2) tells of a file.
public struct FileStatus: Sendable, Equatable {
  /// The file's identity.
  public var identity: FileIdentity
  /// Type and permission bits, as in st_mode.
  public var mode: UInt32
  /// User id of the owner.
  public var owner: UInt32
  /// Group id.
  public var group: UInt32
  /// Number of hard links.
  public var links: UInt32
  /// Bytes.
  public var size: UInt64
  /// 512-byte blocks in use.
  public var blocks: UInt64
  /// The preferred size of a read, in bytes.
  public var blockSize: UInt32
  /// The device that a device file stands for, encoded as st_rdev.
  public var rdev: UInt64
  /// Last access.
  public var accessed: TimeSpec
  /// Last change of the content.
  public var modified: TimeSpec
  /// Last change of the attributes.
  public var changed: TimeSpec

  /// The kind of file; nil if the type's bits are none that Linux knows.
  @inlinable public var kind: FileKind? { FileKind(rawValue: mode & 0o170000) }
  /// Whether it is a directory.
  @inlinable public var isDirectory: Bool { mode & 0o170000 == FileKind.directory.rawValue }
  /// Whether it is a regular file.
  @inlinable public var isRegular: Bool { mode & 0o170000 == FileKind.regular.rawValue }
  /// Whether it is overlayfs's mark for "no such entry": a character device 0:0.
  @inlinable public var isOverlayWhiteout: Bool {
    mode & 0o170000 == FileKind.characterDevice.rawValue && rdev == 0
  }

  /// The attributes of a regular file that lies on no disk.
  public init(
    regularFile permissions: UInt32, owner: UInt32, group: UInt32, size: UInt64, modified: TimeSpec
  ) {
    identity = FileIdentity(device: 0, inode: 0, born: modified)
    mode = FileKind.regular.rawValue | permissions
    (self.owner, self.group, self.size) = (owner, group, size)
    (links, blocks, blockSize, rdev) = (1, (size + 511) / 512, 4096, 0)
    (accessed, self.modified, changed) = (modified, modified, modified)
  }

  /// The attributes of a directory that lies on no disk.
  public init(
    directory permissions: UInt32, owner: UInt32, group: UInt32, modified: TimeSpec, changed: TimeSpec
  ) {
    self.init(regularFile: permissions, owner: owner, group: group, size: 0, modified: modified)
    self.changed = changed
    mode = FileKind.directory.rawValue | permissions
  }

  /// The attributes of an entry of an archive.
  /// - Parameter mode: as in st_mode.
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
    rdev = raw.rdev
    accessed = TimeSpec(raw.accessed)
    modified = TimeSpec(raw.modified)
    changed = TimeSpec(raw.changed)
  }
}

extension TimeSpec {
  init(_ raw: linux_time) {
    self.init(seconds: raw.seconds, nanoseconds: raw.nanoseconds)
  }
}

/// A device number, encoded as st_dev and st_rdev are.
public func deviceNumber(major: UInt32, minor: UInt32) -> UInt64 { linux_makedev(major, minor) }

/// The two halves of a device number.
public func majorMinor(_ device: UInt64) -> (major: UInt32, minor: UInt32) {
  (linux_major(device), linux_minor(device))
}
