import Posix

/// The mounts that a command asks: those at some paths, or all.
struct MountSelection {
  /// nil for all mounts.
  private let paths: [[UInt8]]?

  /// - Parameter operands: paths of mount points, or of anything within the mounts.
  init(_ operands: [[UInt8]], isForAll: Bool, command: String) throws(Failure) {
    if isForAll, !operands.isEmpty { throw .usage("'\(command) --all' takes no MOUNTPOINT") }
    if !isForAll, operands.isEmpty || operands.contains([]) {
      throw .usage("'\(command)' needs a MOUNTPOINT or '--all'")
    }
    paths = isForAll ? nil : operands
  }

  /// Asks all at the same time, and waits for two seconds at most.
  func ask() -> [Result<AskedMount, NoMount>] {
    paths.map { AskedMount.all(at: $0) } ?? Self.all().map { .success($0) }
  }

  /// Those that the caller may ask; what was unmounted meanwhile is left out, too.
  private static func all() -> [AskedMount] {
    let mounts = VisibleMount.all()
    return zip(mounts, MountInspection.all(of: mounts)).compactMap { mount, inspection in
      let excused: [Errno] = [
        .permissionDenied, .notPermitted, .noSuchFileOrDirectory, .inappropriateIOCTLForDevice,
      ]
      if case .unknown(let error) = inspection, excused.contains(error) { return nil }
      return AskedMount(mount: mount, inspection: inspection)
    }
  }
}
