import Posix

/// Finds the mount that a path lies in, without a request to any bundlefs: the mount may hang.
enum MountSearch {
  /// How many symbolic links a path may lead through, as in the kernel.
  private static let mostLinks = 40

  /// Resolves a path up to the root of the bundlefs mount that it enters; within the mount, no symbolic link is
  /// followed.
  /// - Returns: an absolute path.
  /// - Throws: what readlink(2) answers; ELOOP.
  static func resolve(
    _ path: [UInt8], in mounts: [MountTableEntry]
  ) throws(Errno) -> [UInt8] {
    // getcwd(3) may ask the file system.
    let directory = try linkTarget(Array("/proc/self/cwd".utf8)) ?? []
    return try resolve(path, from: directory, in: mounts, link: linkTarget)
  }

  /// nil for what is not a symbolic link.
  private static func linkTarget(_ path: [UInt8]) throws(Errno) -> [UInt8]? {
    let file = try Descriptor.open(path, [.pathOnly, .noFollow])
    do throws(Errno) { return try file.linkTarget() } catch {
      // So readlinkat(2) answers for an open file that is not a link.
      if error == .noSuchFileOrDirectory || error == .invalidArgument { return nil }
      throw error
    }
  }

  /// - Parameter link: the target of a symbolic link; nil for what is not one.
  static func resolve(
    _ path: [UInt8], from directory: [UInt8], in mounts: [MountTableEntry],
    link: ([UInt8]) throws(Errno) -> [UInt8]?
  ) throws(Errno) -> [UInt8] {
    let slash = UInt8(ascii: "/")
    var found = path.first == slash ? [] : MountPoint.split(directory[...])
    var rest = MountPoint.split(path[...])[...]
    var links = 0
    while let name = rest.popFirst() {
      if name.elementsEqual("..".utf8) {
        _ = found.popLast()
        continue
      }
      found.append(name)
      let reached = [slash] + found.joinedPath
      if MountTableEntry.containing(reached, in: mounts)?.isBundlefs == true { continue }
      guard let target = try link(reached) else { continue }
      links += 1
      if links > mostLinks { throw .tooManySymbolicLinkLevels }
      found = target.first == slash ? [] : found.dropLast()
      rest = MountPoint.split(target[...]) + rest
    }
    return [slash] + found.joinedPath
  }

  /// The bundlefs mount that contains a resolved path, which another mount may cover; nil if there is none.
  static func mount(containing path: [UInt8], in mounts: [MountTableEntry]) -> MountTableEntry? {
    guard let top = MountTableEntry.containing(path, in: mounts) else { return nil }
    if top.isBundlefs { return top }
    return mounts.last { $0.isBundlefs && $0.mountPoint == top.mountPoint }
  }
}
