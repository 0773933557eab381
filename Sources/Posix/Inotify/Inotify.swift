import CLinux
import CLibrary

/// An inotify instance.
public struct Inotify: ~Copyable, Sendable {
  private let descriptor: Descriptor

  /// Calls inotify_init1(2) with `IN_CLOEXEC | IN_NONBLOCK`.
  /// - Throws: EMFILE beyond `fs.inotify.max_user_instances`.
  public init() throws(Errno) {
    descriptor = Descriptor(owning: try checked { inotify_init1(CInt(IN_CLOEXEC | IN_NONBLOCK)) })
  }

  /// An instance that another process has made.
  public init(owning file: CInt) { descriptor = Descriptor(owning: file) }

  /// The descriptor to poll for events.
  public var rawValue: CInt { descriptor.rawValue }

  /// Calls inotify_add_watch(2).
  /// - Returns: the watch descriptor; the existing one if the inode is already watched.
  /// - Throws: ENOSPC beyond `fs.inotify.max_user_watches`.
  public func watch(_ path: CName, _ events: InotifyEvent.Mask) throws(Errno) -> WatchDescriptor {
    try checked { inotify_add_watch(descriptor.rawValue, path, events.rawValue) }
  }

  /// Calls inotify_rm_watch(2); does nothing if the watch no longer exists.
  public func remove(_ watch: WatchDescriptor) { inotify_rm_watch(descriptor.rawValue, watch) }

  /// The bytes of pending events (`FIONREAD`).
  public var pendingBytes: Int {
    var count: CInt = 0
    return linux_ioctl(descriptor.rawValue, UInt(FIONREAD), &count) == 0 ? Int(count) : 0
  }

  /// Whether events are pending, in constant time.
  public var hasPending: Bool {
    var polled = pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, 0) != 0
  }

  /// Reads pending events without blocking, oldest first.
  public func read() throws(Errno) -> [InotifyEvent] {
    try withUnsafeTemporaryBytes(64 * 1024) { buffer throws(Errno) in
      let count: Int
      do throws(Errno) {
        count = try checked { CLibrary.read(descriptor.rawValue, buffer.baseAddress, buffer.count) }
      } catch {
        if error.rawValue == EAGAIN { return [] }
        throw error
      }
      return Self.parse(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  /// Parses struct inotify_event: wd, mask, cookie and len of 4 bytes each, and a name padded with NUL to len bytes.
  private static func parse(_ records: UnsafeRawBufferPointer) -> [InotifyEvent] {
    var events: [InotifyEvent] = []
    var offset = 0
    while offset + 16 <= records.count {
      let length = Int(records.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
      if length > records.count - offset - 16 { break }
      let name = records[(offset + 16)..<(offset + 16 + length)].prefix { $0 != 0 }
      events.append(
        InotifyEvent(
          watch: records.loadUnaligned(fromByteOffset: offset, as: Int32.self),
          mask: InotifyEvent.Mask(
            rawValue: records.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)),
          name: Array(name), cookie: records.loadUnaligned(fromByteOffset: offset + 8, as: UInt32.self),
          size: 16 + length))
      offset += 16 + length
    }
    return events
  }
}
