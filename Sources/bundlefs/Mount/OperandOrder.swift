import Layers
import Posix

/// Recognises a MOUNTPOINT that was given before its MAIN.
enum OperandOrder {
  /// - Throws: if MAIN is an empty directory, and the mount would cover another directory that is not: most likely they were
  ///   exchanged. The option `nonempty` says that they were not.
  static func check(_ arguments: MountArguments, at mountPoint: MountPoint) throws(Failure) {
    if arguments.options.coversFiles || arguments.options.overlay.isOn { return }
    guard isEmpty(arguments.main) == true, isEmpty(mountPoint.path) == false else { return }
    // A mount over one of its own layers shows what that has.
    let layers = arguments.options.layers(above: arguments.main)
    if layers.contains(where: { mountPoint.path.isPath(inside: $0.resolved.path) }) { return }
    let order = "bundlefs \(arguments.mountPoint.shellQuoted) \(arguments.main.shellQuoted)"
    throw .usage(
      "MAIN '\(arguments.main.shown)' is empty and MOUNTPOINT '\(arguments.mountPoint.shown)' is not; MAIN comes first: "
        + "'\(order)'; '-o nonempty' mounts in the order given")
  }

  /// nil for what is not a directory, or cannot be listed.
  private static func isEmpty(_ path: [UInt8]) -> Bool? {
    do throws(Errno) {
      var isEmpty = true
      try Descriptor.open(path, [.read, .directory]).forEachEntry { _ in isEmpty = false }
      return isEmpty
    } catch { return nil }
  }
}
