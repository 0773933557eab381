import CLibrary

/// A watch descriptor; an instance does not reuse them.
public typealias WatchDescriptor = Int32

/// An event of inotify(7).
public struct InotifyEvent: Sendable {
  /// The event and flag bits of inotify(7).
  public struct Mask: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt32
    /// The mask with these bits.
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    /// `IN_MODIFY`.
    public static let modified = Mask(rawValue: UInt32(IN_MODIFY))
    /// `IN_CLOSE_WRITE`; the only event after writes through a memory mapping.
    public static let closeWrite = Mask(rawValue: UInt32(IN_CLOSE_WRITE))
    /// `IN_ATTRIB`: mode, owner, times, extended attributes or link count.
    public static let attributes = Mask(rawValue: UInt32(IN_ATTRIB))
    /// `IN_CREATE`.
    public static let created = Mask(rawValue: UInt32(IN_CREATE))
    /// `IN_DELETE`.
    public static let deleted = Mask(rawValue: UInt32(IN_DELETE))
    /// `IN_MOVED_FROM`.
    public static let movedFrom = Mask(rawValue: UInt32(IN_MOVED_FROM))
    /// `IN_MOVED_TO`.
    public static let movedTo = Mask(rawValue: UInt32(IN_MOVED_TO))
    /// `IN_DELETE_SELF`.
    public static let deletedSelf = Mask(rawValue: UInt32(IN_DELETE_SELF))
    /// `IN_MOVE_SELF`.
    public static let movedSelf = Mask(rawValue: UInt32(IN_MOVE_SELF))
    /// `IN_Q_OVERFLOW`.
    public static let overflow = Mask(rawValue: UInt32(IN_Q_OVERFLOW))
    /// `IN_IGNORED`.
    public static let ignored = Mask(rawValue: UInt32(IN_IGNORED))
    /// `IN_UNMOUNT`.
    public static let unmounted = Mask(rawValue: UInt32(IN_UNMOUNT))
    /// `IN_ISDIR`.
    public static let isDirectory = Mask(rawValue: UInt32(IN_ISDIR))
    /// `IN_DONT_FOLLOW`.
    public static let dontFollow = Mask(rawValue: UInt32(IN_DONT_FOLLOW))
    /// `IN_MASK_ADD`.
    public static let maskAdd = Mask(rawValue: UInt32(IN_MASK_ADD))
    /// Events after which the content may differ.
    public static let content: Mask = [.modified, .closeWrite]
    /// Events of directory entries.
    public static let names: Mask = [.created, .deleted, .movedFrom, .movedTo]
  }

  /// The watch; -1 for `IN_Q_OVERFLOW`.
  public let watch: WatchDescriptor
  /// The event.
  public let mask: Mask
  /// The entry's name; empty for the watched inode itself.
  public let name: [UInt8]
  /// Equal for the two events of one rename; otherwise 0.
  public let cookie: UInt32
  /// The size of the event in the kernel's queue, in bytes.
  public let size: Int
}
