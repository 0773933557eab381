import CLinux

/// A file type; the raw value is its `S_IFMT` bits.
public enum FileKind: UInt32, Sendable, BitwiseCopyable {
  case fifo = 0o010000
  case characterDevice = 0o020000
  case directory = 0o040000
  case blockDevice = 0o060000
  case regular = 0o100000
  case symbolicLink = 0o120000
  case socket = 0o140000
}

/// Identifies a file by device, inode number and birth time: equal for hard links, different after the inode number was
/// reused (if the file system records birth times).
///
/// Stored for every known file, hence compact: device numbers have 32 bits in the kernel, and an Int64 of nanoseconds
/// wraps around after 584 years.
public struct FileIdentity: Hashable, Sendable, BitwiseCopyable {
  /// The inode number.
  public let inode: UInt64
  /// Nanoseconds; 0 if it is unknown, and negative where the file's rights stand in for it.
  private var birth: Int64
  private let shortDevice: UInt32

  /// The device number of the file system.
  public var device: UInt64 { UInt64(shortDevice) }

  /// Creates an identity from its parts.
  /// - Parameter born: the birth time; 0 if the file system does not record it.
  public init(device: UInt64, inode: UInt64, born: TimeSpec) {
    self.inode = inode
    birth = born.seconds &* 1_000_000_000 &+ Int64(born.nanoseconds)
    shortDevice = UInt32(truncatingIfNeeded: device)
  }
}

extension FileIdentity {
  /// Whether the file system records birth times. Where it does not, a file that takes the inode number of another one has
  /// the same identity.
  public var hasBirthTime: Bool { birth > 0 }

  /// A hash that stays the same after a reboot: without the device, which may get another number, where a birth time tells
  /// files of one inode number apart.
  public var lastingHash: UInt64 {
    hasBirthTime ? mixedHash(inode, UInt64(bitPattern: birth)) : mixedHash(inode, device)
  }

  /// Puts a file's owner, group and permission bits in the place of a birth time that is unknown. Files of one inode number
  /// are then the same only if they have the same rights.
  mutating func distinguish(owner: UInt32, group: UInt32, permissions: UInt32) {
    if birth != 0 { return }
    let users = (UInt64(owner) << 32 | UInt64(group)) &* 0x9E37_79B9_7F4A_7C15
    birth = Int64(bitPattern: (users ^ UInt64(permissions)) | 1 << 63)
  }

  /// Whether another file may have the same identity: file systems reuse an inode number at once, and birth times are
  /// as coarse as the kernel's timer tick of up to 10 ms.
  public func mayRecur(at now: TimeSpec) -> Bool {
    let age = (now.seconds &* 1_000_000_000 &+ Int64(now.nanoseconds)) &- birth
    return birth <= 0 || age < 1_000_000_000
  }
}

/// Calls makedev(3).
public func deviceNumber(major: UInt32, minor: UInt32) -> UInt64 { linux_makedev(major, minor) }

/// Calls major(3) and minor(3).
public func majorMinor(_ device: UInt64) -> (major: UInt32, minor: UInt32) {
  (linux_major(device), linux_minor(device))
}

/// Spreads words over all bits of a hash that is the same in every process.
public func mixedHash(_ words: UInt64...) -> UInt64 {
  words.reduce(0) { hash, word in
    var hash = (hash ^ word) &+ 0x9E37_79B9_7F4A_7C15
    hash = (hash ^ (hash >> 32)) &* 0xD6E8_FEB8_6659_FD93
    hash = (hash ^ (hash >> 32)) &* 0xD6E8_FEB8_6659_FD93
    return hash ^ (hash >> 32)
  }
}
