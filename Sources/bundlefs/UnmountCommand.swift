import Posix

/// `bundlefs unmount MOUNTPOINT`.
struct UnmountCommand {
  private var mountPoint: [UInt8] = []
  private var isLazy = false
  private var wantsHelp = false

  /// Reads what follows `unmount`.
  init(_ arguments: [[UInt8]]) throws(Failure) {
    var operands: [[UInt8]] = []
    for argument in arguments {
      switch argument.shown {
      case "--lazy", "-l", "-z": isLazy = true
      case "-h", "--help": wantsHelp = true
      case let option where option.hasPrefix("-") && option.count > 1:
        throw .usage("unknown option '\(option)' of unmount")
      default: operands.append(argument)
      }
    }
    if wantsHelp { return }
    guard operands.count == 1, !operands[0].isEmpty else { throw .usage("'unmount' needs one MOUNTPOINT") }
    mountPoint = operands[0]
  }

  /// Unmounts a mount of ours, and no other.
  func run() throws(Failure) {
    if wantsHelp { return Terminal.print(Help.text) }
    let place = try MountPoint(mountPoint)
    guard let entry = MountTableEntry.top(at: place.path) else {
      throw .failed("\(place.path.shown): nothing is mounted there")
    }
    guard entry.isBundlefs else {
      throw .failed("\(place.path.shown): not a bundlefs mount but \(entry.type); use 'umount' for it")
    }
    if isLazy || place.isStale { try place.unmount(isLazy: true) } else { try place.unmountWithListeners() }
  }
}
