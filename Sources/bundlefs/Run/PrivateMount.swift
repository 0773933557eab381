import Glibc
import Posix

/// The mount of `bundlefs run`, made in a mount namespace of its own.
struct PrivateMount {
  let mountPoint: MountPoint
  let main: [UInt8]
  let options: MountOptions

  /// Makes the calling process, which must be single-threaded, leave its mount namespace, and mounts there.
  func make() throws(Failure) -> ReceivedMount {
    let users: PrivateNamespace.Users
    // In a user namespace without a map it is another one.
    let isRoot = geteuid() == 0
    do throws(Errno) { users = try PrivateNamespace.enter() } catch {
      throw .failed("cannot create a mount namespace: \(error); \(Self.remedy(for: error, isRoot))")
    }
    // The kernel requires that it is opened in the user namespace of the mount.
    let device = try Failure.naming("/dev/fuse") { () throws(Errno) in
      try Descriptor.open("/dev/fuse", [.readWrite])
    }
    let data = Self.data(device.rawValue, options, users)
    try Failure.naming("cannot mount at \(mountPoint.path.shown)") { () throws(Errno) in
      try Mounts.mountFUSE(
        options.fsname ?? MountOptions.resolved(main), at: mountPoint.path, type: "fuse.bundlefs",
        flags: flags, data: data)
    }
    // Without it the mount works, but announces nothing.
    return ReceivedMount(device: device, users: (try? users.open()) ?? nil)
  }

  private static func remedy(for error: Errno, _ isRoot: Bool) -> String {
    if error == .invalidArgument {
      return "in a chroot its root must be a mount point (mount --bind ROOT ROOT)"
    }
    if error == .noSpace {
      return "the sysctls user.max_mnt_namespaces and user.max_user_namespaces must permit another one"
    }
    if isRoot { return "root of a container needs CAP_SYS_ADMIN there" }
    return "the sysctls user.max_user_namespaces and kernel.unprivileged_userns_clone must permit user "
      + "namespaces, and kernel.apparmor_restrict_unprivileged_userns must be 0"
  }

  private var flags: UInt {
    var flags = MountFlags(of: UInt(MS_NOSUID | MS_NODEV))
    for option in options.flags { flags.apply(option) }
    return flags.bits
  }

  private static func data(_ device: CInt, _ options: MountOptions, _ users: PrivateNamespace.Users) -> String
  {
    let (user, group) = (geteuid(), getegid())
    var data = "fd=\(device),rootmode=40000,user_id=\(user),group_id=\(group),default_permissions"
    let letsOthers = options.passed.contains {
      $0.elementsEqual("allow_other".utf8) || $0.elementsEqual("allow_root".utf8)
    }
    // A user namespace of one user has no others, and the option would lock its owner out who is outside.
    if letsOthers, users == .same { data += ",allow_other" }
    if let maxRead = options.maxRead { data += ",max_read=\(maxRead)" }
    return data
  }
}
