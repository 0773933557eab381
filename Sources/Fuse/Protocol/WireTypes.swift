import CFuse
import Glibc
import Posix

/// The number by which the kernel and we name a node; the kernel knows only numbers that we gave it.
public struct NodeID: RawRepresentable, Hashable, Sendable {
  /// The number; never 0.
  public let rawValue: UInt64
  /// The node of that number.
  @inlinable public init(rawValue: UInt64) { self.rawValue = rawValue }
  /// The root of the mount.
  public static let root = NodeID(rawValue: UInt64(FUSE_ROOT_ID))
}

/// The thread of a program that a request comes from.
public struct Caller: Hashable, Sendable {
  /// The user by whose rights it acts.
  public let user: UInt32
  /// The thread's number; 0 where the daemon's namespace has none for it.
  public let thread: Int32
}

/// A node's attributes as a reply carries them.
public struct NodeAttributes: Sendable {
  /// The backing file's attributes.
  public var attributes: FileStatus
  /// The inode number that programs see.
  public var inodeNumber: UInt64
  /// Seconds for which the kernel may keep the attributes.
  public var timeout: Double

  /// The attributes to reply with.
  public init(_ attributes: FileStatus, inodeNumber: UInt64, timeout: Double) {
    self.attributes = attributes
    self.inodeNumber = inodeNumber
    self.timeout = timeout
  }

  var stat: stat {
    var result = Glibc.stat()
    result.st_ino = UInt(inodeNumber)
    result.st_mode = attributes.mode
    result.st_nlink = UInt(attributes.links)
    result.st_uid = attributes.owner
    result.st_gid = attributes.group
    result.st_rdev = UInt(attributes.rdev)
    result.st_size = Int(clamping: attributes.size)
    result.st_blksize = Int(attributes.blockSize)
    result.st_blocks = Int(clamping: attributes.blocks)
    result.st_atim = timespec(attributes.accessed)
    result.st_mtim = timespec(attributes.modified)
    result.st_ctim = timespec(attributes.changed)
    return result
  }
}

extension timespec {
  fileprivate init(_ moment: TimeSpec) {
    self.init(tv_sec: Int(moment.seconds), tv_nsec: Int(moment.nanoseconds))
  }
}

/// An entry as LOOKUP and READDIRPLUS answer it. Each one that reaches the kernel counts as one lookup,
/// which a forget takes back.
public struct EntryReply: Sendable {
  /// The node.
  public var node: NodeID
  /// Its attributes.
  public var attributes: NodeAttributes
  /// Seconds for which the kernel may keep that the name stands for the node.
  public var timeout: Double

  /// The entry to answer with.
  public init(node: NodeID, attributes: NodeAttributes, timeout: Double) {
    self.node = node
    self.attributes = attributes
    self.timeout = timeout
  }

  var parameters: fuse_entry_param {
    var result = fuse_entry_param()
    result.ino = node.rawValue
    result.attr = attributes.stat
    result.attr_timeout = attributes.timeout
    result.entry_timeout = timeout
    return result
  }
}

/// What the kernel and we agree upon when the mount begins.
public struct ConnectionSettings: Sendable {
  /// The kernel asks for POSIX ACLs once and enforces them.
  public var posixACLs = true
  /// The kernel keeps link targets.
  public var cachesSymbolicLinks = false
  /// Over how many other file systems those may lie whose files the kernel reads by itself, plus 1; 0 for none.
  /// So many count for this mount, too, and only two file systems may lie over another (Linux's limit).
  public var passthroughDepth = 0
  /// The most bytes of a READ; the option `max_read` must say the same. nil: as many as the kernel likes.
  public var maxRead: UInt32?

  /// The settings for a mount that caches nothing.
  public init() {}
}
