import Glibc
import Posix
import Routing

/// `bundlefs unmount MOUNTPOINT` and `bundlefs unmount --all`.
struct UnmountCommand {
  /// nil for all mounts of the caller.
  private let mountPoint: MountPoint?
  private var isLazy = false

  init(_ arguments: [[UInt8]]) throws(Failure) {
    var operands: [[UInt8]] = []
    var isForAll = false
    for argument in arguments {
      switch argument.shown {
      case "--lazy", "-l", "-z": isLazy = true
      case "--all", "-a": isForAll = true
      case let option where option.hasPrefix("-") && option.count > 1:
        throw .unknownOption(option, of: "unmount")
      default: operands.append(argument)
      }
    }
    if isForAll {
      guard operands.isEmpty else { throw .usage("'unmount --all' takes no MOUNTPOINT") }
      mountPoint = nil
      return
    }
    guard operands.count == 1, !operands[0].isEmpty else { throw .usage("'unmount' needs one MOUNTPOINT") }
    mountPoint = try MountPoint(operands[0])
  }

  /// - Returns: the exit status: 1 if one of all mounts is still there.
  func run() throws(Failure) -> CInt {
    guard let mountPoint else { return unmountAll() }
    try unmount(mountPoint)
    return 0
  }

  private func unmount(_ mountPoint: MountPoint) throws(Failure) {
    guard let entry = MountTableEntry.top(at: mountPoint.path) else {
      throw .failed("\(mountPoint.path.shown): nothing is mounted there")
    }
    guard entry.isBundlefs else {
      throw .failed("\(mountPoint.path.shown): not a bundlefs mount but \(entry.type); use 'umount' instead")
    }
    if isLazy { return try mountPoint.unmount(isLazy: true) }
    switch MountHealth(of: mountPoint.path) {
    case .alive:
      let end = MountEnd(of: entry)
      try mountPoint.disconnectWaitingAndUnmount()
      end?.wait()
    case .dead: try mountPoint.unmount(isLazy: true)
    case .unresponsive: try mountPoint.abort()
    }
  }

  /// Unmounts the caller's mounts, the newest first: mounts can lie in others. Prints a line for each.
  private func unmountAll() -> CInt {
    var status: CInt = 0
    let user = getuid()
    for entry in MountTableEntry.all().reversed() where entry.isBundlefs && entry.user == user {
      do throws(Failure) {
        try unmount(entry)
        Terminal.print("\(entry.mountPoint.shown.escapingControls): unmounted")
      } catch {
        Terminal.printError(error.message)
        status = 1
      }
    }
    return status
  }

  private func unmount(_ entry: MountTableEntry) throws(Failure) {
    guard let top = MountTableEntry.top(at: entry.mountPoint), top.id == entry.id else {
      // Unmounting one unmounts its copies, too, where mounts propagate.
      if !MountTableEntry.all().contains(where: { $0.id == entry.id }) { return }
      throw .failed("\(entry.mountPoint.shown): another file system is mounted over it; unmount that first")
    }
    try unmount(MountPoint(path: entry.mountPoint))
  }
}
