import CLinux
import Glibc

/// A watch of an inotify instance; numbers are not given twice while the instance lives.
public typealias WatchDescriptor = Int32

/// What inotify(7) tells.
public struct InotifyEvent: Sendable {
  /// The kinds of event and the flags that come with them: the bits of inotify(7).
  public struct Mask: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt32
    /// These bits.
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    /// Content was written or cut.
    public static let modified = Mask(rawValue: UInt32(IN_MODIFY))
    /// A file that was open for writing was closed: it may have been written through a mapping, of which
    /// nothing else tells.
    public static let closeWrite = Mask(rawValue: UInt32(IN_CLOSE_WRITE))
    /// Mode, owner, times, xattrs or link count changed.
    public static let attributes = Mask(rawValue: UInt32(IN_ATTRIB))
    /// A name came, by creation.
    public static let created = Mask(rawValue: UInt32(IN_CREATE))
    /// A name went, by deletion.
    public static let deleted = Mask(rawValue: UInt32(IN_DELETE))
    /// A name went, by renaming.
    public static let movedFrom = Mask(rawValue: UInt32(IN_MOVED_FROM))
    /// A name came, by renaming.
    public static let movedTo = Mask(rawValue: UInt32(IN_MOVED_TO))
    /// The watched inode itself was deleted.
    public static let deletedSelf = Mask(rawValue: UInt32(IN_DELETE_SELF))
    /// The watched inode itself was renamed.
    public static let movedSelf = Mask(rawValue: UInt32(IN_MOVE_SELF))
    /// Events were lost.
    public static let overflow = Mask(rawValue: UInt32(IN_Q_OVERFLOW))
    /// The watch is gone.
    public static let ignored = Mask(rawValue: UInt32(IN_IGNORED))
    /// The file system was unmounted.
    public static let unmounted = Mask(rawValue: UInt32(IN_UNMOUNT))
    /// The event is about a directory.
    public static let isDirectory = Mask(rawValue: UInt32(IN_ISDIR))
    /// Asks to watch a symbolic link itself rather than what it points at.
    public static let dontFollow = Mask(rawValue: UInt32(IN_DONT_FOLLOW))
    /// Asks for these events beside those that the watch has already.
    public static let maskAdd = Mask(rawValue: UInt32(IN_MASK_ADD))
    /// Content may be another.
    public static let content: Mask = [.modified, .closeWrite]
    /// A name came or went.
    public static let names: Mask = [.created, .deleted, .movedFrom, .movedTo]
  }

  /// The watch that it comes from; -1 for an overflow.
  public let watch: WatchDescriptor
  /// What happened.
  public let mask: Mask
  /// The entry of the watched directory; empty for the watched inode itself.
  public let name: [UInt8]
  /// Equal for the two events of one renaming, and for no others; 0 in all but those.
  public let cookie: UInt32
  /// The bytes that the event took in the queue.
  public let size: Int
}

/// An inotify instance.
public struct Inotify: ~Copyable, Sendable {
  private let descriptor: Descriptor

  /// Makes an instance.
  /// - Throws: EMFILE beyond `fs.inotify.max_user_instances`.
  public init() throws(Errno) {
    descriptor = Descriptor(owning: try checked { inotify_init1(CInt(IN_CLOEXEC | IN_NONBLOCK)) })
  }

  /// The descriptor's number, to be polled for events to read.
  public var rawValue: CInt { descriptor.rawValue }

  /// Watches what a path leads to.
  /// - Returns: the watch, which is one that there was if the inode is watched already.
  /// - Throws: ENOSPC beyond `fs.inotify.max_user_watches`.
  public func watch(_ path: CName, _ events: InotifyEvent.Mask) throws(Errno) -> WatchDescriptor {
    try checked { inotify_add_watch(descriptor.rawValue, path, events.rawValue) }
  }

  /// Ends a watch. One that has ended already is no error.
  public func remove(_ watch: WatchDescriptor) { inotify_rm_watch(descriptor.rawValue, watch) }

  /// Bytes of events that are there to be read.
  public var pendingBytes: Int {
    var count: CInt = 0
    return linux_ioctl(descriptor.rawValue, UInt(FIONREAD), &count) == 0 ? Int(count) : 0
  }

  /// The events that are there to be read, oldest first; none if there are none.
  public func read() throws(Errno) -> [InotifyEvent] {
    try withUnsafeTemporaryBytes(64 * 1024) { buffer throws(Errno) in
      let count: Int
      do throws(Errno) {
        count = try checked { Glibc.read(descriptor.rawValue, buffer.baseAddress, buffer.count) }
      } catch {
        if error.rawValue == EAGAIN { return [] }
        throw error
      }
      return Self.parse(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  /// Records of wd (4 bytes), mask (4), cookie (4), len (4) and a name padded with NUL to len bytes.
  private static func parse(_ records: UnsafeRawBufferPointer) -> [InotifyEvent] {
    var events: [InotifyEvent] = []
    var place = 0
    while place + 16 <= records.count {
      let length = Int(records.loadUnaligned(fromByteOffset: place + 12, as: UInt32.self))
      let name = records[(place + 16)..<(place + 16 + length)].prefix { $0 != 0 }
      events.append(
        InotifyEvent(
          watch: records.loadUnaligned(fromByteOffset: place, as: Int32.self),
          mask: InotifyEvent.Mask(
            rawValue: records.loadUnaligned(fromByteOffset: place + 4, as: UInt32.self)),
          name: Array(name), cookie: records.loadUnaligned(fromByteOffset: place + 8, as: UInt32.self),
          size: 16 + length))
      place += 16 + length
    }
    return events
  }
}
