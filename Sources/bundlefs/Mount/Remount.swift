import ControlClient
import Glibc
import Posix
import Routing

/// `mount -o remount,…`, which changes the mount flags and nothing else.
struct Remount {
  private let mountPoint: MountPoint
  private let options: [String]

  /// - Throws: if an option is given that differs from the mount's and is not a mount flag.
  init(_ arguments: MountArguments) throws(Failure) {
    mountPoint = try MountPoint(mounted: arguments.mountPoint)
    options = arguments.options.flags
    try check(arguments)
  }

  private func check(_ arguments: MountArguments) throws(Failure) {
    let status = try Failure.naming(mountPoint.path.shown) { () throws(Errno) in
      JSONValue(try StatusClient.read(.json, at: mountPoint.path))
    }
    guard let present = status?["options"] else { return }
    for (name, value) in Self.requested(arguments) where present[name]?.string != value {
      throw .failed(
        "\(mountPoint.path.shown): remounting cannot change \(Self.described(name, value)); it is "
          + "\(Self.described(name, present[name]?.string ?? "")); unmount it and mount it again")
    }
  }

  /// The options that are given and are not mount flags, with the values in which the daemon shows them.
  private static func requested(_ arguments: MountArguments) -> [(String, String)] {
    let shown = arguments.options.shown
    var requested = arguments.options.names.compactMap { name in shown[name].map { (name, $0) } }
    if let name = arguments.options.fsname { requested.append(("fsname", name.shown)) }
    return requested
  }

  private static func described(_ name: String, _ value: String) -> String {
    value.isEmpty ? "'\(name)' (not set)" : "'\(name)=\(value)'"
  }

  func run() throws(Failure) {
    do throws(Errno) {
      var flags = MountFlags(of: try mountPoint.open([.pathOnly]).mountFlags())
      for option in options { flags.apply(option) }
      try withCName(mountPoint.path) { name throws(Errno) in try Mounts.remount(name, flags: flags.bits) }
    } catch {
      let reason = error == .notPermitted ? "only root can remount" : "\(error)"
      throw .failed("\(mountPoint.path.shown): \(reason)")
    }
  }
}

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

  /// Applies an option; ignores one that is not a mount flag.
  mutating func apply(_ option: String) {
    guard let change = Self.changes[option] else { return }
    bits = bits & ~change.clear | change.set
  }
}
