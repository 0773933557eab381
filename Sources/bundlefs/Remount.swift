import Glibc
import Posix

/// What `mount -o remount,…` does: the flags of a mount of ours change, and nothing else.
struct Remount {
  private let mountPoint: MountPoint
  private let options: [String]

  /// - Parameter options: names of flags, in the order in which they were given.
  init(at given: [UInt8], options: [String]) throws(Failure) {
    mountPoint = try MountPoint(mounted: given)
    self.options = options
  }

  /// Changes the flags.
  func run() throws(Failure) {
    do throws(Errno) {
      var flags = MountFlags(of: try mountPoint.open([.pathOnly]).mountFlags())
      for option in options { flags.apply(option) }
      try withCName(mountPoint.path) { name throws(Errno) in try Mounts.remount(name, flags: flags.bits) }
    } catch {
      let reason = error == .notPermitted ? "only root can change what is mounted" : "\(error)"
      throw .failed("\(mountPoint.path.shown): \(reason)")
    }
  }
}

/// The flags of a mount, as mount(2) has them.
struct MountFlags {
  private(set) var bits: UInt

  /// What each option sets and what it clears.
  private static let changes: [String: (set: UInt, clear: UInt)] = {
    // How access times are kept is one of several ways.
    let times = UInt(MS_NOATIME) | UInt(MS_RELATIME) | UInt(MS_STRICTATIME)
    var changes: [String: (set: UInt, clear: UInt)] = [
      "noatime": (UInt(MS_NOATIME), times), "strictatime": (UInt(MS_STRICTATIME), times),
      "relatime": (UInt(MS_RELATIME), times), "atime": (UInt(MS_RELATIME), times),
      "dirsync": (UInt(MS_DIRSYNC), 0),
    ]
    for (on, off, flag) in [
      ("ro", "rw", MS_RDONLY), ("nosuid", "suid", MS_NOSUID), ("nodev", "dev", MS_NODEV),
      ("noexec", "exec", MS_NOEXEC), ("nodiratime", "diratime", MS_NODIRATIME),
      ("sync", "async", MS_SYNCHRONOUS),
    ] {
      changes[on] = (UInt(flag), 0)
      changes[off] = (0, UInt(flag))
    }
    return changes
  }()

  /// Whether the option is one of them.
  static func has(_ option: String) -> Bool { changes[option] != nil }

  /// Those with which a mount of ours is mounted anew. mount(8) names those that are to be, and leaves out those
  /// that are not; but `nosuid` and `nodev`, which FUSE sets by itself, go only when they are asked to. How access
  /// times are kept, the kernel leaves as it is unless it is told.
  init(of flags: UInt) { bits = flags & UInt(MS_NOSUID | MS_NODEV) }

  /// Does what an option says; one that is no flag changes nothing.
  mutating func apply(_ option: String) {
    guard let change = Self.changes[option] else { return }
    bits = bits & ~change.clear | change.set
  }
}
