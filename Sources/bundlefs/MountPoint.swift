import ControlClient
import Glibc
import Posix
import Routing

/// The directory on which something is or will be mounted.
struct MountPoint {
  /// Its absolute path, without symbolic links.
  let path: [UInt8]

  /// Finds a mount point, also one whose daemon or whose layer is dead (which no path lookup gets past).
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

  /// Finds a mount of ours.
  init(mounted given: [UInt8]) throws(Failure) {
    try self.init(given)
    guard MountTableEntry.top(at: path)?.isBundlefs == true else {
      throw .failed("\(path.shown): no bundlefs is mounted there")
    }
    if isStale { throw .failed("\(path.shown): its daemon is dead; use 'bundlefs unmount \(path.shown)'") }
  }

  /// The names of a path, which may be given as it is inside the mount, or from the mount's root.
  func names(of given: [UInt8]) -> [[UInt8]] {
    let inside = below(given) ?? (try? realPath(given)).flatMap { below($0) }
    return (inside ?? given[...]).split(separator: slash).filter { !$0.elementsEqual(".".utf8) }.map {
      Array($0)
    }
  }

  /// What of an absolute path follows the mount point; nil if it lies elsewhere.
  private func below(_ given: [UInt8]) -> ArraySlice<UInt8>? {
    let isInside = given.starts(with: path) && (given.count == path.count || given[path.count] == slash)
    return isInside ? given.dropFirst(path.count) : nil
  }

  private var slash: UInt8 { UInt8(ascii: "/") }

  /// Opens what is on top here.
  func open(_ flags: OpenFlags) throws(Errno) -> Descriptor {
    try withCName(path) { name throws(Errno) in try Descriptor.open(name, flags) }
  }

  /// Finds the mount's control file.
  /// - Parameter device: the device number that the mount must have; nil accepts any.
  func controlFile(device: UInt64? = nil) throws(Failure) -> ControlFileLocation {
    do throws(Errno) { return try ControlFileLocation(mountPoint: path, device: device) } catch {
      throw .failed("\(path.shown): \(error)")
    }
  }

  /// Whether a mount is here whose daemon is dead.
  var isStale: Bool {
    do throws(Errno) {
      _ = try open([.pathOnly]).attributes().mode
      return false
    } catch {
      return error == .socketNotConnected
    }
  }

  /// Makes sure that something of ours can be mounted here; mounts of dead daemons are cleared away.
  func prepare() throws(Failure) {
    // Several can lie on top of one another.
    for _ in 0..<16 where isStale {
      guard let entry = MountTableEntry.top(at: path), entry.isBundlefs else {
        throw .failed("\(path.shown): a dead mount is there; remove it with 'fusermount3 -u \(path.shown)'")
      }
      try unmount(isLazy: true)
    }
    if MountTableEntry.top(at: path)?.isBundlefs == true {
      throw .failed(
        "\(path.shown): busy, bundlefs is mounted there already; use 'bundlefs unmount \(path.shown)' first")
    }
    let isDirectory: Bool
    do throws(Errno) {
      isDirectory = try open([.pathOnly]).attributes().isDirectory
    } catch {
      throw .failed("\(path.shown): \(error)")
    }
    if !isDirectory { throw .failed("\(path.shown): not a directory, so nothing can be mounted there") }
  }

  /// Unmounts a live mount of ours. Those who only wait at its control file are sent away.
  func unmountWithListeners() throws(Failure) {
    do throws(Failure) { try unmount(isLazy: false) } catch {
      guard error.message == busy.message, (try? StatusClient.read(.disconnect, at: path)) != nil else {
        throw error
      }
      for _ in 0..<20 {
        usleep(25_000)
        if (try? unmount(isLazy: false)) != nil { return }
      }
      throw error
    }
  }

  /// Unmounts what is on top here, by umount2(2), or as an ordinary user by fusermount3.
  func unmount(isLazy: Bool) throws(Failure) {
    do throws(Errno) {
      try withCName(path) { name throws(Errno) in try Mounts.unmount(name, isLazy: isLazy) }
    } catch {
      if error == .notPermitted {
        try unmountAsUser(isLazy: isLazy)
      } else if error == .resourceBusy {
        throw busy
      } else {
        throw .failed("\(path.shown): cannot unmount: \(error)")
      }
    }
  }

  private var busy: Failure {
    .failed(
      "\(path.shown): busy, a program has a file open or stands there ('fuser -m \(path.shown)' names it); "
        + "'bundlefs unmount --lazy \(path.shown)' does not wait for it")
  }

  private func unmountAsUser(isLazy: Bool) throws(Failure) {
    let outcome = runQuietly("fusermount3", ["-u"] + (isLazy ? ["-z"] : []) + ["--"], path)
    switch outcome {
    case .succeeded: return
    case .missing:
      throw .failed("\(path.shown): cannot unmount: fusermount3 is missing; install the package 'fuse3'")
    case .failed(let words):
      if words.contains("busy") { throw busy }
      throw .failed("\(path.shown): cannot unmount: \(words)")
    }
  }

  /// A dead mount's path: its parent's real path and its name.
  private static func deadPath(_ given: [UInt8]) throws(Failure) -> [UInt8] {
    var trimmed = given
    while trimmed.count > 1, trimmed.last == UInt8(ascii: "/") { trimmed.removeLast() }
    let slash = trimmed.lastIndex(of: UInt8(ascii: "/"))
    let parent: [UInt8]
    switch slash {
    case nil: parent = [UInt8(ascii: ".")]
    case 0: parent = [UInt8(ascii: "/")]
    case let slash?: parent = Array(trimmed[..<slash])
    }
    do throws(Errno) {
      var path = try realPath(parent)
      if path.last != UInt8(ascii: "/") { path.append(UInt8(ascii: "/")) }
      return path + trimmed[(slash.map { $0 + 1 } ?? 0)...]
    } catch {
      throw .failed("\(given.shown): \(error)")
    }
  }
}
