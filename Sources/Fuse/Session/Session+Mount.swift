import CFuse
import Glibc
import Posix

/// The session's mount, which is identified by its ID, since its path can come to lead elsewhere: it can be renamed,
/// moved or covered.
extension Session {
  /// The version of libfuse, such as `3.14.0`.
  public static var libraryVersion: String { String(cString: fuse_pkgversion()) }

  /// Calls `fuse_session_mount`.
  /// - Parameter path: the absolute path of the mount point.
  /// - Throws: the message of libfuse or fusermount3.
  public func mount(at path: [UInt8], debug: Bool) throws(MountError) {
    let mounted = StderrCapture.during(!debug) {
      (path + [0]).withUnsafeBytes { bytes in
        fuse_session_mount(pointer, bytes.baseAddress?.assumingMemoryBound(to: CChar.self))
      }
    }
    if mounted.result != 0 { throw MountError(message: mounted.message ?? "mounting failed") }
    recordMount(at: path)
  }

  /// Takes the place of `mount` where another process has mounted, in another mount namespace.
  /// - Parameters:
  ///   - mount: what it has sent.
  ///   - path: the absolute path of the mount point there.
  /// - Throws: if libfuse refuses the descriptor.
  public func attach(_ mount: consuming ReceivedMount, at path: [UInt8]) throws(MountError) {
    let (device, namespace) = mount.release()
    // The session closes the device.
    if fuse_session_mount(pointer, "/dev/fd/\(device)") != 0 {
      throw MountError(message: "libfuse cannot use the descriptor of /dev/fuse")
    }
    users = namespace
    recordMount(at: path)
  }

  func recordMount(at path: [UInt8]) {
    if isElsewhere {
      // No file system that this process can reach has the device number 0.
      mountPoint = (path, 0)
    } else {
      recordEntry(at: path)
    }
    if dispatcher.passthrough != nil { _ = interpose(on: fuse_session_fd(pointer)) }
  }

  private func recordEntry(at path: [UInt8]) {
    var entry = mountTableEntry(at: path)
    if let mounted = entry { entry?.uniqueID = Self.uniqueID(of: mounted) }
    self.entry = entry
    mountPoint = (path, entry?.device ?? 0)
  }

  private static func uniqueID(of entry: MountTableEntry) -> UInt64? {
    guard let root = try? Descriptor.open(entry.mountPoint, [.pathOnly, .directory, .noFollow]),
      (try? root.device()) == entry.device
    else { return nil }
    return try? root.uniqueMountID()
  }

  /// The device number of the mount, once it is mounted; 0 if it is elsewhere.
  public var device: UInt64 { mountPoint.device }

  /// Whether the mount was made over another one of the same type at the same path, at the same time.
  public var coversItsOwnKind: Bool {
    MountTableEntry.all().contains {
      $0.id == entry?.parent && $0.mountPoint == entry?.mountPoint && $0.type == entry?.type
    }
  }

  /// The new mount's entry. A mount made at the same time at the same path differs in the device number, which
  /// `/proc/self/fdinfo` shows for `/dev/fuse` since Linux 6.17.
  private func mountTableEntry(at path: [UInt8]) -> MountTableEntry? {
    guard let minor = connectionNumber else { return MountTableEntry.top(at: path) }
    let device = deviceNumber(major: 0, minor: minor)
    let entries = MountTableEntry.all().filter { $0.device == device }
    // Mount propagation makes further ones at other paths.
    return entries.first { $0.mountPoint == path } ?? entries.first
  }

  /// The number of the connection, which is the minor number of the mount's device.
  var connectionNumber: UInt32? {
    let info = try? Descriptor.open("/proc/self/fdinfo/\(fuse_session_fd(pointer))", [.read]).readAll()
    let lines = String(decoding: info ?? [], as: UTF8.self).split(separator: "\n")
    let line = lines.first { $0.hasPrefix("fuse_connection:") }
    return line?.split(separator: "\t").last.flatMap { UInt32($0) }
  }

  /// Unmounts this session's own mount lazily, and closes the connection. If another mount covers it, it stays, dead,
  /// until that one is unmounted: the kernel could only unmount both.
  /// - Returns: why it could not be unmounted; nil if it is unmounted or was before.
  @discardableResult
  public func unmount() -> String? {
    defer { closeConnection() }
    guard let entry else { return nil }
    do throws(Errno) {
      try Mounts.detach(entry) { path throws(Errno) in
        // It takes no descriptor or ID; the path was checked right before.
        guard case .succeeded = runQuietly("fusermount3", ["-u", "-q", "-z", "--"], path) else {
          throw .notPermitted
        }
      }
    } catch {
      if error == .noSuchFileOrDirectory { return nil }
      return error == .resourceBusy
        ? "another file system is mounted over it; the dead mount below stays until that is unmounted"
        : "\(error)"
    }
    return nil
  }

  /// Closes `/dev/fuse`, which aborts the connection: pending and further requests fail. The descriptor's number stays
  /// in use, since libfuse closes it again.
  func closeConnection() {
    let file = fuse_session_fd(pointer)
    guard file >= 0, let null = try? Descriptor.open("/dev/null", [.readWrite]) else { return }
    dup2(null.rawValue, file)
  }
}
