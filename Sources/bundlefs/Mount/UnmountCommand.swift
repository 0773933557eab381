import Posix

/// `bundlefs unmount MOUNTPOINT`.
struct UnmountCommand {
  private let mountPoint: MountPoint
  private var isLazy = false

  init(_ arguments: [[UInt8]]) throws(Failure) {
    var operands: [[UInt8]] = []
    for argument in arguments {
      switch argument.shown {
      case "--lazy", "-l", "-z": isLazy = true
      case let option where option.hasPrefix("-") && option.count > 1:
        throw .usage("'unmount' has no option '\(option)'")
      default: operands.append(argument)
      }
    }
    guard operands.count == 1, !operands[0].isEmpty else { throw .usage("'unmount' needs one MOUNTPOINT") }
    mountPoint = try MountPoint(operands[0])
  }

  func run() throws(Failure) {
    guard let entry = MountTableEntry.top(at: mountPoint.path) else {
      throw .failed("\(mountPoint.path.shown): nothing is mounted there")
    }
    guard entry.isBundlefs else {
      throw .failed("\(mountPoint.path.shown): not a bundlefs mount but \(entry.type); use 'umount' instead")
    }
    if isLazy { return try mountPoint.unmount(isLazy: true) }
    switch MountHealth(of: mountPoint.path) {
    case .alive: try mountPoint.disconnectWaitingAndUnmount()
    case .dead: try mountPoint.unmount(isLazy: true)
    case .unresponsive: try mountPoint.abort()
    }
  }
}
