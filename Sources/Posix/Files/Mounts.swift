import CLinux
import Glibc

/// The mounts in this process's mount namespace.
public enum Mounts {
  /// Calls umount2(2) with `UMOUNT_NOFOLLOW`.
  /// - Parameter isLazy: whether to pass `MNT_DETACH`.
  /// - Throws: EBUSY; EPERM without `CAP_SYS_ADMIN`; EINVAL if the path is not a mount point.
  public static func unmount(_ path: CName, isLazy: Bool) throws(Errno) {
    _ = try checked { linux_unmount(path, isLazy) }
  }

  /// Calls mount(2) with `MS_REMOUNT`.
  /// - Parameter flags: all flags that the mount has afterwards.
  /// - Throws: EPERM without `CAP_SYS_ADMIN`; EINVAL if the path is not a mount point.
  public static func remount(_ path: CName, flags: UInt) throws(Errno) {
    _ = try checked { mount(nil, path, nil, UInt(MS_REMOUNT) | flags, nil) }
  }

  /// Calls setns(2) with `CLONE_NEWNS`.
  /// - Parameter file: `/proc/PID/ns/mnt`.
  /// - Throws: EPERM without `CAP_SYS_ADMIN`; EINVAL for another file, or in a process with several threads.
  public static func enterNamespace(_ file: borrowing Descriptor) throws(Errno) {
    _ = try checked { linux_enter_mount_namespace(file.rawValue) }
  }
}
