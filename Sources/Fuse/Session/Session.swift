import CFuse
import Glibc
import Posix

/// A failure to mount or to serve, with a message for the user.
public struct MountError: Error, Sendable {
  /// One line without the program's name.
  public let message: String

  /// Creates an error.
  public init(message: String) { self.message = message }
}

/// A FUSE session: one mount, from its options to its unmount.
///
/// Call `init`, `mount`, `negotiate` and `serve`, in this order. Threads exist only from `serve` on, so that the process
/// can fork before.
public final class Session: @unchecked Sendable {
  // libfuse synchronizes its session; the other properties change only before there are threads.
  let pointer: OpaquePointer
  let dispatcher: Dispatcher
  /// The path of the mount point, and the device number of the mount.
  var mountPoint = (path: [UInt8](), device: UInt64(0))
  /// What ends it; nil before and after `serve`.
  let end = Locked<SessionEnd?>(nil)
  /// The mount in the mount table; nil before `mount`.
  var entry: MountTableEntry?

  /// Whether the mount is in another mount namespace, so that no path of this process leads to it. To be set before
  /// `attach` or `resume`.
  public var isElsewhere = false
  /// The descriptor of the user namespace in which the mount is, which stays open until the end of the process; -1 for that
  /// of this process. To be set before `resume`.
  public var users: CInt = -1

  /// Whether it continues with another process's connection, which is then left as it is if this process fails: a
  /// successor may succeed.
  var isResumed = false

  /// The INIT request, for `resume`; empty before `negotiate`.
  public private(set) var initRequest: [UInt8] = []

  /// Calls `fuse_session_new`.
  /// - Parameters:
  ///   - options: mount options without `-o`, unescaped.
  ///   - debug: whether libfuse prints all requests.
  /// - Throws: libfuse's message about an invalid option.
  public convenience init(fileSystem: any FileSystem, options: [[UInt8]], debug: Bool) throws(MountError) {
    try self.init(fileSystem: fileSystem, options: options, debug: debug, capturesErrors: !debug)
  }

  /// - Parameter capturesErrors: requires that no other thread prints to standard error.
  init(
    fileSystem: any FileSystem, options: [[UInt8]], debug: Bool, capturesErrors: Bool
  ) throws(MountError) {
    dispatcher = Dispatcher(fileSystem)
    let context = Unmanaged.passUnretained(dispatcher).toOpaque()
    let session = StderrCapture.during(capturesErrors) {
      withArguments(options, debug: debug) { arguments in
        var table = operationTable()
        return fuse_session_new(arguments, &table, MemoryLayout<fuse_lowlevel_ops>.size, context)
      }
    }
    guard let pointer = session.result else {
      throw MountError(message: session.message ?? "libfuse refused the options")
    }
    self.pointer = pointer
  }

  deinit {
    releaseMountPoint()
    fuse_session_destroy(pointer)
  }

  /// Has libfuse free the path of the mount point. It does so only in `fuse_session_unmount`, which unmounts by path,
  /// whatever is there by now, unless the connection has an error, such as that of a pipe without a reader.
  private func releaseMountPoint() {
    guard entry != nil, let pipe = try? Descriptor.brokenPipe(),
      dup2(pipe.rawValue, fuse_session_fd(pointer)) >= 0
    else { return }
    fuse_session_unmount(pointer)
  }

  /// The number of requests by kind.
  public var requests: RequestCounters { dispatcher.counters }

  /// Uses a `SOCK_SEQPACKET` socket instead of `/dev/fuse`; for tests.
  func connect(to socket: consuming Descriptor) -> Bool { interpose(on: socket.release()) }

  /// Routes messages to and from the kernel through `PassthroughNegotiation`.
  func interpose(on file: CInt) -> Bool {
    var channel = fuse_custom_io()
    channel.read = { file, buffer, size, context in
      let count = read(file, buffer, size)
      if count > 0 { negotiation(context)?.receive(UnsafeRawBufferPointer(start: buffer, count: count)) }
      return count
    }
    channel.writev = { file, vector, count, context in
      guard let vector, let negotiation = negotiation(context) else { return writev(file, vector, count) }
      return negotiation.send(vector, count, to: file)
    }
    return fuse_session_custom_io(pointer, &channel, file) == 0
  }

  /// Reads and processes one request; for tests.
  /// - Returns: false when the connection has ended.
  func answerOne() -> Bool {
    var buffer = fuse_buf()
    defer { free(buffer.mem) }
    guard fuse_session_receive_buf(pointer, &buffer) > 0 else { return false }
    fuse_session_process_buf(pointer, &buffer)
    return true
  }

  /// Processes the INIT request. Later requests block until `serve`.
  /// - Throws: if the protocol versions are incompatible; the mount is unmounted then.
  public func negotiate() throws(MountError) {
    do throws(MountError) { try processInit() } catch {
      unmount()
      throw error
    }
    raiseReadahead()
  }

  /// The readahead window in bytes. A reply of 1 MiB would exceed the pipe through which it is spliced, whose size
  /// is limited for users.
  private static let readahead = 512 << 10

  /// Raises the readahead window from its default of 128 KiB; fails silently without root.
  private func raiseReadahead() {
    let (major, minor) = isElsewhere ? (0, connectionNumber ?? 0) : majorMinor(mountPoint.device)
    let setting = Array("/sys/class/bdi/\(major):\(minor)/read_ahead_kb".utf8)
    try? withCName(setting) { name throws(Errno) in
      try Descriptor.open(name, [.write]).writeInOneCall(Array("\(Self.readahead >> 10)".utf8))
    }
  }

  private func processInit() throws(MountError) {
    var buffer = fuse_buf()
    defer { free(buffer.mem) }
    var result: CInt
    repeat { result = fuse_session_receive_buf(pointer, &buffer) } while result == -EINTR
    guard result > 0 else { throw MountError(message: "the kernel closed the connection before INIT") }
    initRequest = Array(UnsafeRawBufferPointer(start: buffer.mem, count: buffer.size))
    try answerFirstInit(&buffer)
  }

  private func answerFirstInit(_ buffer: inout fuse_buf) throws(MountError) {
    do throws(Errno) {
      try InitReply.completing(buffer, to: fuse_session_fd(pointer)) {
        fuse_session_process_buf(pointer, &buffer)
      }
    } catch {
      throw MountError(message: "cannot reply to INIT: \(error)")
    }
    try checkVersions()
  }

  /// To be called when libfuse has processed INIT.
  func checkVersions() throws(MountError) {
    if fuse_session_exited(pointer) != 0 {
      throw MountError(message: "the FUSE versions of the kernel and libfuse are incompatible")
    }
  }

  /// Whether requests are no longer processed.
  var hasExited: Bool { fuse_session_exited(pointer) != 0 }

  /// Replies an error to a request, which another thread may be processing: the kernel takes the first reply.
  func reply(to unique: UInt64, _ error: Errno) {
    var header = ReplyHeader(error: -error.rawValue, unique: unique)
    _ = write(fuse_session_fd(pointer), &header, MemoryLayout<ReplyHeader>.size)
  }

  /// Reads a request into the buffer.
  /// - Returns: false after EINTR; nil when the session has ended.
  func receive(into buffer: inout fuse_buf) -> Bool? {
    if fuse_session_exited(pointer) != 0 { return nil }
    let result = fuse_session_receive_buf(pointer, &buffer)
    if result == -EINTR { return false }
    return result > 0 ? true : nil
  }

  /// Whether a request is pending.
  var hasRequest: Bool {
    var polled = pollfd(fd: fuse_session_fd(pointer), events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, 0) > 0
  }
}

/// struct fuse_out_header.
private struct ReplyHeader {
  var length = UInt32(16)
  var error: Int32
  var unique: UInt64
}

/// The negotiation of the session with this context.
private func negotiation(_ context: UnsafeMutableRawPointer?) -> PassthroughNegotiation? {
  guard let context else { return nil }
  return Unmanaged<Dispatcher>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.passthrough }
}

/// Calls the body with libfuse's argument vector for the options.
private func withArguments<Result>(
  _ options: [[UInt8]], debug: Bool, _ body: (UnsafeMutablePointer<fuse_args>) -> Result
) -> Result {
  var arguments = fuse_args()
  defer { fuse_opt_free_args(&arguments) }
  fuse_opt_add_arg(&arguments, "bundlefs")
  if debug { fuse_opt_add_arg(&arguments, "-d") }
  for option in options {
    fuse_opt_add_arg(&arguments, "-o")
    // libfuse splits options at commas that are not escaped.
    var escaped: [UInt8] = []
    for byte in option {
      if byte == UInt8(ascii: ",") || byte == UInt8(ascii: "\\") { escaped.append(UInt8(ascii: "\\")) }
      escaped.append(byte)
    }
    (escaped + [0]).withUnsafeBytes { bytes in
      _ = fuse_opt_add_arg(&arguments, bytes.baseAddress?.assumingMemoryBound(to: CChar.self))
    }
  }
  return body(&arguments)
}
