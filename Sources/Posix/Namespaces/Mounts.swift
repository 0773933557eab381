import CLinux
import CLibrary

/// The mounts in this process's mount namespace.
public enum Mounts {
  /// Calls umount2(2) with `UMOUNT_NOFOLLOW`.
  /// - Parameter isLazy: whether to pass `MNT_DETACH`.
  /// - Throws: EBUSY; EPERM without `CAP_SYS_ADMIN`; EINVAL if the path is not a mount point.
  public static func unmount(_ path: CName, isLazy: Bool) throws(Errno) {
    _ = try checked { linux_unmount(path, isLazy) }
  }

  /// Calls umount2(2) with `MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW`: aborts a FUSE connection and unmounts.
  /// - Throws: EPERM without `CAP_SYS_ADMIN`; EINVAL if the path is not a mount point.
  public static func abort(_ path: CName) throws(Errno) {
    _ = try checked { linux_abort_mount(path) }
  }

  /// Unmounts a mount lazily (`MNT_DETACH`), wherever it is mounted by now, and no other one. Requests that wait for an
  /// answer of a FUSE mount fail (`MNT_FORCE`).
  /// - Parameters:
  ///   - entry: the mount, identified by its ID and device number.
  ///   - fallback: called with the present path if umount2(2) fails with EPERM.
  /// - Throws: ENOENT if it is not mounted any more; EBUSY if it is covered: its path leads to another mount.
  public static func detach(
    _ entry: MountTableEntry, orElse fallback: ([UInt8]) throws(Errno) -> Void
  ) throws(Errno) {
    guard let present = MountTableEntry.all().first(where: { $0.id == entry.id && $0.device == entry.device })
    else { throw .noSuchFileOrDirectory }
    let root = try Descriptor.open(present.mountPoint, [.pathOnly, .directory, .noFollow])
    guard try root.device() == entry.device, try root.mountID() ?? entry.id == entry.id else {
      throw .resourceBusy
    }
    // Both numbers can be those of another file system that was mounted later.
    if let wanted = entry.uniqueID, try root.uniqueMountID() != wanted { throw .noSuchFileOrDirectory }
    do throws(Errno) { _ = try checked { linux_detach(root.rawValue) } } catch {
      guard error == .notPermitted else { throw error }
      try fallback(present.mountPoint)
    }
  }

  /// Calls mount(2) with `MS_REMOUNT`.
  /// - Parameter flags: all flags that the mount has afterwards.
  /// - Throws: EPERM without `CAP_SYS_ADMIN`; EINVAL if the path is not a mount point.
  public static func remount(_ path: CName, flags: UInt) throws(Errno) {
    _ = try checked { mount(nil, path, nil, UInt(MS_REMOUNT) | flags, nil) }
  }

  /// Mounts a FUSE file system by mount(2).
  /// - Parameters:
  ///   - source: what the mount table shows as mounted.
  ///   - data: `fd=`, `rootmode=` and the other options that only FUSE has.
  /// - Throws: EPERM without `CAP_SYS_ADMIN`; EINVAL if the descriptor was opened in another user namespace.
  public static func mountFUSE(
    _ source: [UInt8], at path: [UInt8], type: String, flags: UInt, data: String
  ) throws(Errno) {
    try withCName(source) { source throws(Errno) in
      try withCName(path) { path throws(Errno) in
        _ = try checked { mount(source, path, type, flags, data) }
      }
    }
  }

  /// Makes a further, detached mount of a FUSE file system, wherever that is mounted. It sends no request.
  /// - Parameters:
  ///   - device: the descriptor of `/dev/fuse` of its connection.
  ///   - users: that of the user namespace in which it is mounted; -1 for this process's.
  /// - Returns: its root, with `O_PATH`.
  /// - Throws: ENOTCONN once it is unmounted; EPERM without `CAP_SYS_ADMIN` in that user namespace; EINVAL before Linux
  ///   5.15.
  public static func mountFurther(device: CInt, users: CInt) throws(Errno) -> Descriptor {
    Descriptor(owning: try checked { linux_mount_further(device, users) })
  }

  /// Calls setns(2) with `CLONE_NEWNS`.
  /// - Parameter file: `/proc/PID/ns/mnt`.
  /// - Throws: EPERM without `CAP_SYS_ADMIN`; EINVAL for another file, or in a process with several threads.
  public static func enterNamespace(_ file: borrowing Descriptor) throws(Errno) {
    _ = try checked { linux_enter_mount_namespace(file.rawValue) }
  }
}
