import CFuse
import Glibc
import Posix

/// A nodeid, assigned by the daemon.
public struct NodeID: RawRepresentable, Hashable, Sendable {
  /// The nodeid; never 0.
  public let rawValue: UInt64
  /// Creates a nodeid.
  @inlinable public init(rawValue: UInt64) { self.rawValue = rawValue }
  /// `FUSE_ROOT_ID`.
  public static let root = NodeID(rawValue: UInt64(FUSE_ROOT_ID))
}

/// The thread that caused a request.
public struct Caller: Hashable, Sendable {
  /// The file system user ID.
  public let user: UInt32
  /// The thread ID; 0 if the thread is not in the daemon's PID namespace.
  public let thread: Int32

  /// A caller with these IDs.
  public init(user: UInt32, thread: Int32) {
    self.user = user
    self.thread = thread
  }
}

/// The attributes in a reply.
public struct NodeAttributes: Sendable {
  /// The attributes of the file in the layer.
  public var attributes: FileStatus
  /// The inode number in the mount.
  public var inodeNumber: UInt64
  /// Seconds for which the kernel caches the attributes.
  public var timeout: Double
  /// The earliest modification and change times that are shown; nil for the file's own.
  public var earliestTime: TimeSpec?

  /// Creates attributes for a reply.
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
    result.st_mtim = timespec(earliestTime.map { max($0, attributes.modified) } ?? attributes.modified)
    result.st_ctim = timespec(earliestTime.map { max($0, attributes.changed) } ?? attributes.changed)
    return result
  }
}

extension timespec {
  fileprivate init(_ time: TimeSpec) {
    self.init(tv_sec: Int(time.seconds), tv_nsec: Int(time.nanoseconds))
  }
}

/// An entry in a LOOKUP or READDIRPLUS reply. Each one that the kernel accepts counts as one lookup, until FORGET.
public struct EntryReply: Sendable {
  /// The node.
  public var node: NodeID
  /// Its attributes.
  public var attributes: NodeAttributes
  /// Seconds for which the kernel caches the dentry.
  public var timeout: Double

  /// Creates an entry for a reply.
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

/// The settings negotiated at INIT.
public struct ConnectionSettings: Sendable {
  /// Whether the kernel enforces POSIX ACLs (`FUSE_POSIX_ACL`).
  public var posixACLs = true
  /// Whether the kernel caches link targets (`FUSE_CACHE_SYMLINKS`).
  public var cachesSymbolicLinks = false
  /// Whether the file system applies the umask of callers, since a default ACL replaces it (`FUSE_DONT_MASK`).
  public var appliesUmask = false
  /// Whether programs write more than URLs and commands.
  public var takesWrites = false
  /// The file of which a short WRITE takes less time than to wake another worker; nil for none.
  public var commandFile: NodeID?
  /// The maximum stacking depth of passthrough (`max_stack_depth`); 0 disables passthrough. The mount counts with this
  /// depth itself, and Linux allows a depth of 2.
  public var passthroughDepth = 0
  /// The maximum size of a READ in bytes, equal to the mount option `max_read`; nil for the kernel's maximum.
  public var maxRead: UInt32?

  /// The settings of a mount without caches.
  public init() {}
}
