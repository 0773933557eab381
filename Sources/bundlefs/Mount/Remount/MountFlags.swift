import Glibc

/// The generic options of mount(8), which mount(2) takes as flags.
struct MountFlags {
  private(set) var bits: UInt

  private static let changes: [String: (set: UInt, clear: UInt)] = {
    // The access time policies exclude each other.
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

  static func contains(_ option: String) -> Bool { changes[option] != nil }

  /// mount(8) passes all flags that are to be set, so flags that it omits are cleared. Only `nosuid` and `nodev`,
  /// which FUSE sets itself, stay. The kernel keeps the access time policy if no flag sets one.
  init(of flags: UInt) { bits = flags & UInt(MS_NOSUID | MS_NODEV) }

  /// The flags that bring a mount back to a former state (`f_flag` of statvfs(3), where other bits mean other things).
  init(restoring flags: UInt) { bits = flags & Self.changes.values.reduce(0) { $0 | $1.set } }

  var isReadOnly: Bool {
    get { bits & UInt(MS_RDONLY) != 0 }
    set { bits = newValue ? bits | UInt(MS_RDONLY) : bits & ~UInt(MS_RDONLY) }
  }

  /// Applies an option; ignores one that is not a mount flag.
  mutating func apply(_ option: String) {
    guard let change = Self.changes[option] else { return }
    bits = bits & ~change.clear | change.set
  }
}
