import Glibc
import Posix
import TestSupport

/// Watches directories of a mount with inotify and records the events.
final class MountWatcher {
  /// An event of a watched directory.
  struct Event: Hashable, CustomStringConvertible {
    /// The watched directory's path from the mount's root; empty for the root.
    let directory: ByteString
    /// The entry's name; empty for the directory itself.
    let name: ByteString
    let mask: InotifyEvent.Mask
    let cookie: UInt32

    var description: String { "\(directory)/\(name) \(String(mask.rawValue, radix: 16))" }
  }

  private let point: ByteString
  private let inotify: Inotify
  private var directories: [WatchDescriptor: ByteString] = [:]
  private(set) var events: [Event] = []

  /// IN_ALL_EVENTS, which Swift's Glibc module lacks.
  static let all = InotifyEvent.Mask(rawValue: 0xFFF)

  /// Watches the directories at these paths of the mount.
  init(_ point: ByteString, _ paths: [ByteString] = [""]) throws {
    self.point = point
    inotify = try Inotify()
    for path in paths { try watch(path) }
  }

  /// Adds a watch.
  func watch(_ path: ByteString) throws {
    let watch = try withCName((path.bytes.isEmpty ? point : point / path).bytes) { path throws(Errno) in
      try inotify.watch(path, Self.all)
    }
    directories[watch] = path
  }

  /// Reads the queued events, except those caused by read access.
  func readEvents() throws {
    while case let read = try inotify.read(), !read.isEmpty {
      for event in read {
        let noise = InotifyEvent.Mask(rawValue: UInt32(IN_ACCESS | IN_CLOSE_NOWRITE))
        if !event.mask.isDisjoint(with: noise) { continue }
        if event.mask.contains(.overflow) { throw TestFailure("the test's own inotify queue overflowed") }
        events.append(
          Event(
            directory: directories[event.watch] ?? "?", name: ByteString(event.name), mask: event.mask,
            cookie: event.cookie))
      }
    }
  }

  /// Discards all recorded and queued events.
  func discardEvents() throws {
    try readEvents()
    events = []
  }

  /// Waits for an event with this mask for a name.
  func receives(
    _ mask: InotifyEvent.Mask, _ name: ByteString, in directory: ByteString = "", within seconds: Double = 5
  ) throws -> Bool {
    try eventually(within: seconds) {
      try readEvents()
      return events.contains {
        $0.directory == directory && $0.name == name && $0.mask.isSuperset(of: mask)
      }
    }
  }

  /// The masks of a name's events in order, without IN_OPEN.
  func masks(_ name: ByteString, in directory: ByteString = "") -> [InotifyEvent.Mask] {
    let opened = InotifyEvent.Mask(rawValue: UInt32(IN_OPEN))
    return events.filter { $0.directory == directory && $0.name == name && $0.mask != opened }.map(\.mask)
  }
}
