import CFuse
import Glibc
import Posix

/// Going on with a connection whose former process has died.
extension Session {
  /// FUSE_INIT_EXT in `flags` of the INIT request, FUSE_HAS_RESEND in `flags2`, and their offsets.
  private static let (initExt, hasResend): (UInt32, UInt32) = (1 << 30, 1 << 7)
  private static let (flags, flags2) = (52, 56)
  /// FUSE_NOTIFY_POLL and FUSE_NOTIFY_RESEND.
  private static let (poll, resend): (Int32, Int32) = (1, 7)

  /// The descriptor of `/dev/fuse`.
  public var descriptor: CInt { fuse_session_fd(pointer) }

  /// Whether the kernel sends requests again that a dead process has read and not answered (since Linux 6.9).
  public var canBeResumed: Bool {
    guard initRequest.count >= Self.flags2 + 4 else { return false }
    return initRequest.withUnsafeBytes { request in
      request.loadUnaligned(fromByteOffset: Self.flags, as: UInt32.self) & Self.initExt != 0
        && request.loadUnaligned(fromByteOffset: Self.flags2, as: UInt32.self) & Self.hasResend != 0
    }
  }

  /// Takes the place of `mount` and `negotiate` in a successor. The session must be retained for as long as the process
  /// lives: its end closes the connection.
  /// - Parameters:
  ///   - device: the descriptor of `/dev/fuse`, open in this process.
  ///   - path: the mount point's path at the mount.
  ///   - request: the INIT request that the first process has answered.
  /// - Throws: if libfuse refuses the request.
  public func resume(_ device: CInt, at path: [UInt8], _ request: [UInt8]) throws(MountError) {
    isResumed = true
    if fuse_session_mount(pointer, "/dev/fd/\(device)") != 0 {
      throw MountError(message: "the connection cannot be taken over")
    }
    recordMount(at: path)
    request.withUnsafeBytes { dispatcher.passthrough?.receive($0) }
    var buffer = fuse_buf()
    buffer.mem = malloc(request.count)
    buffer.size = request.count
    defer { free(buffer.mem) }
    request.withUnsafeBytes { bytes in
      if let address = bytes.baseAddress { buffer.mem.copyMemory(from: address, byteCount: bytes.count) }
    }
    // The kernel ignores this reply: the first process has answered. So nothing has to be added, for which the
    // connection's descriptor, which the processes share, would be another file for a moment.
    fuse_session_process_buf(pointer, &buffer)
    try checkVersions()
  }

  /// Makes `serve` return soon, with the connection as it is, for a successor to go on.
  public func handOver() { end.withLock { $0 }?.handOver() }

  /// Makes programs poll again that a predecessor would have woken.
  /// - Parameter files: the kernel's numbers of their open files.
  public func wakePollers(of files: [UInt64]) {
    for file in files {
      var notification = (length: UInt32(24), code: Self.poll, unique: UInt64(0), file: file)
      _ = write(descriptor, &notification, 24)
    }
  }

  /// Has the kernel send the requests again that a predecessor had read and not answered.
  public func requestUnanswered() {
    var notification = (length: UInt32(16), code: Self.resend, unique: UInt64(0))
    _ = write(descriptor, &notification, 16)
  }
}
