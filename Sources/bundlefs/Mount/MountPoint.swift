import ControlClient
import Glibc
import Posix
import Routing

struct MountPoint {
  /// The absolute path, without symbolic links.
  let path: [UInt8]
  /// The device number of the mount that is meant; nil for whichever is there.
  var device: UInt64?

  /// A path that is known to be absolute and without symbolic links.
  init(path: [UInt8]) { self.path = path }

  /// Resolves a path, also if a dead mount makes realpath(3) fail.
  init(_ given: [UInt8]) throws(Failure) {
    do throws(Errno) {
      path = try realPath(given)
    } catch {
      guard error == .socketNotConnected || error == .ioError else {
        throw .failed("\(given.shown): \(error)")
      }
      path = try Self.deadPath(given)
    }
  }

  init(mounted given: [UInt8]) throws(Failure) {
    try self.init(given)
    guard MountTableEntry.top(at: path)?.isBundlefs == true else {
      throw .failed("\(path.shown): no bundlefs is mounted there")
    }
    switch MountHealth(ofDaemonAt: path) {
    case .alive: break
    case .dead: throw Self.deadDaemon(path.shown)
    case .unresponsive: throw Self.silentDaemon(path.shown)
    }
  }

  static func deadDaemon(_ path: String) -> Failure {
    .failed("\(path): its daemon is dead; use 'bundlefs unmount \(path)'")
  }

  static func silentDaemon(_ path: String) -> Failure {
    .failed(
      "\(path): its daemon does not answer; the watchdog replaces a worker that hangs (option 'watchdog'), and "
        + "'bundlefs unmount \(path)' ends the mount")
  }

  /// The components of a path in the mount, which may be given in full, relative to the working directory, or relative to
  /// the mount's root.
  func components(of path: [UInt8]) -> [[UInt8]] { componentsInside(path) ?? Self.split(path[...]) }

  /// As `components(of:)`, but nil for an absolute path outside the mount.
  func componentsInside(_ path: [UInt8]) -> [[UInt8]]? {
    if let relative = relativePath(of: path) ?? relativePath(of: Self.resolvingParent(of: path)) {
      return Self.split(relative)
    }
    if (try? realPath(path)) == self.path { return [] }
    return path.first == slash ? nil : Self.split(path[...])
  }

  /// The path without symbolic links, except for one at its end; the path itself if it leads nowhere.
  static func resolvingParent(of path: [UInt8]) -> [UInt8] {
    let slash = UInt8(ascii: "/")
    let parts = split(path[...])
    guard let name = parts.last, !name.elementsEqual("..".utf8) else { return (try? realPath(path)) ?? path }
    let start = path.first == slash ? [slash] : [UInt8(ascii: "."), slash]
    let parent = start + parts.dropLast().joined(separator: [slash])
    return (try? realPath(parent)).map { $0 + ($0.last == slash ? [] : [slash]) + name } ?? path
  }

  /// An absolute path, without symbolic links as far as it exists.
  static func absolute(_ path: [UInt8]) -> [UInt8] {
    if let real = try? realPath(path) { return real }
    let (names, slash) = (split(path[...]), UInt8(ascii: "/"))
    guard let name = names.last else { return path }
    let parent = (path.first == slash ? [slash] : []) + names.dropLast().joined(separator: [slash])
    let above = absolute(parent.isEmpty ? [UInt8(ascii: ".")] : Array(parent))
    return above + (above.last == slash ? [] : [slash]) + name
  }

  /// The names of a path, without `.`.
  static func split(_ path: ArraySlice<UInt8>) -> [[UInt8]] {
    path.split(separator: UInt8(ascii: "/")).filter { !$0.elementsEqual(".".utf8) }.map { Array($0) }
  }

  private func relativePath(of absolute: [UInt8]) -> ArraySlice<UInt8>? {
    let isInside =
      absolute.starts(with: path) && (absolute.count == path.count || absolute[path.count] == slash)
    return isInside ? absolute.dropFirst(path.count) : nil
  }

  private var slash: UInt8 { UInt8(ascii: "/") }

  /// - Throws: ENOTCONN if another mount than the one that is meant is there, or none.
  func open(_ flags: OpenFlags) throws(Errno) -> Descriptor {
    let root = try Descriptor.open(path, flags)
    if let device, try root.device() != device { throw .socketNotConnected }
    return root
  }

  func controlFile(device: UInt64? = nil) throws(Failure) -> ControlFileLocation {
    let location = try Failure.naming(path.shown) { () throws(Errno) in
      try ControlFileLocation(mountPoint: path, device: device ?? self.device)
    }
    if location.exists { return location }
    throw .failed(
      "\(path.shown): the mount has no control file ('control=none'), which this command needs; mount without that option"
    )
  }

  /// Whether the daemon of the mount is dead. A daemon that does not answer counts as alive.
  var isStale: Bool { MountHealth(of: path) == .dead }

  /// Checks that a bundlefs can be mounted here, and unmounts those whose daemons are dead.
  func prepare() throws(Failure) {
    // Several mounts may be stacked.
    for _ in 0..<16 {
      if !isStale { break }
      guard let entry = MountTableEntry.top(at: path), entry.isBundlefs else {
        throw .failed("\(path.shown): the mount there is dead; remove it with 'fusermount3 -u \(path.shown)'")
      }
      try unmount(isLazy: true)
    }
    if MountTableEntry.top(at: path)?.isBundlefs == true {
      throw alreadyMounted
    }
    let (status, type) = try Failure.naming(path.shown) { () throws(Errno) in
      let point = try open([.pathOnly])
      return (try point.attributes(), try point.fileSystemType())
    }
    if !status.isDirectory { throw .failed("\(path.shown): the mount point must be a directory") }
    // A process's directory vanishes with it, and the mount too.
    if type == Self.procfs { throw .failed("\(path.shown): the mount point must not be in procfs") }
  }

  var alreadyMounted: Failure {
    .failed(
      "\(path.shown): busy: a bundlefs is already mounted there; unmount it first with 'bundlefs unmount \(path.shown)'"
    )
  }

  /// `PROC_SUPER_MAGIC`.
  private static let procfs = 0x9FA0

  /// If the mount is busy, asks the daemon to disconnect the control file's pollers and to fail requests that wait for
  /// a layer, and retries for a second.
  func disconnectWaitingAndUnmount() throws(Failure) {
    do throws(Failure) { try unmount(isLazy: false) } catch {
      guard error.message == busy.message, (try? StatusClient.read(.disconnect, at: path)) != nil else {
        throw error
      }
      for _ in 0..<40 {
        usleep(25_000)
        if (try? unmount(isLazy: false)) != nil { return }
      }
      throw error
    }
  }

  /// Unmounts a file system that does not answer, which programs that wait for it keep busy. Their requests fail at once
  /// if root does it, or else when the daemon has noticed that it is unmounted.
  func abort() throws(Failure) {
    do throws(Errno) { try withCName(path) { name throws(Errno) in try Mounts.abort(name) } } catch {
      guard error == .notPermitted else { throw .failed("\(path.shown): cannot unmount: \(error)") }
      try unmountAsUser(isLazy: true)
    }
  }

  /// Calls `umount2(2)`; runs fusermount3 if that is not permitted.
  func unmount(isLazy: Bool) throws(Failure) {
    do throws(Errno) {
      try withCName(path) { name throws(Errno) in try Mounts.unmount(name, isLazy: isLazy) }
    } catch {
      switch error {
      case .notPermitted: try unmountAsUser(isLazy: isLazy)
      case .resourceBusy: throw busy
      default: throw .failed("\(path.shown): cannot unmount: \(error)")
      }
    }
  }

  private var busy: Failure {
    .failed(
      "\(path.shown): busy: a process has open files or its working directory there ('fuser -m \(path.shown)' lists it); "
        + "'bundlefs unmount --lazy \(path.shown)' does not wait for it")
  }

  private func unmountAsUser(isLazy: Bool) throws(Failure) {
    switch runQuietly("fusermount3", ["-u"] + (isLazy ? ["-z"] : []) + ["--"], path) {
    case .succeeded: return
    case .notFound:
      throw .failed("\(path.shown): cannot unmount: fusermount3 is missing; install the package 'fuse3'")
    case .ended: return
    case .failed(let message) where message.contains("busy"): throw busy
    case .failed(let message):
      throw .failed("\(path.shown): cannot unmount: \(message)")
    }
  }

  /// The parent's real path and the mount's name.
  private static func deadPath(_ given: [UInt8]) throws(Failure) -> [UInt8] {
    var trimmed = given
    while trimmed.count > 1, trimmed.last == UInt8(ascii: "/") { trimmed.removeLast() }
    let slash = trimmed.lastIndex(of: UInt8(ascii: "/"))
    let parent = slash.map { Array(trimmed[...$0]) } ?? [UInt8(ascii: ".")]
    var path = try Failure.naming(given.shown) { () throws(Errno) in try realPath(parent) }
    if path.last != UInt8(ascii: "/") { path.append(UInt8(ascii: "/")) }
    return path + trimmed[(slash.map { $0 + 1 } ?? 0)...]
  }
}
