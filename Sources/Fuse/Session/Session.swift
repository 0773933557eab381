import CFuse
import Glibc
import Posix

/// Why a mount could not be made, in words for a person.
public struct MountError: Error, Sendable {
  /// One line, without the program's name.
  public let message: String

  /// The failure of these words.
  public init(message: String) { self.message = message }
}

/// A mount: from its options, by mounting and serving, to its end.
///
/// The order is `init`, `mount`, `negotiate`, then (in the process that stays) `serve`. Threads exist from
/// `serve` on only, so that the process may fork before.
public final class Session: @unchecked Sendable {
  // libfuse guards what its session holds; the rest here is written before threads exist.
  let pointer: OpaquePointer
  let dispatcher: Dispatcher
  /// Where it is mounted, and the number of the device that it is then.
  private(set) var place = (path: [UInt8](), device: UInt64(0))

  /// Prepares a session.
  /// - Parameters:
  ///   - options: what libfuse and mount(2) are to be told, each as it stands after `-o`, unescaped.
  ///   - debug: whether libfuse prints every request.
  /// - Throws: the words of libfuse about an option that it does not take.
  public convenience init(fileSystem: any FileSystem, options: [[UInt8]], debug: Bool) throws(MountError) {
    try self.init(fileSystem: fileSystem, options: options, debug: debug, keepsErrorsBack: !debug)
  }

  /// - Parameter keepsErrorsBack: true only where no other thread may be printing.
  init(
    fileSystem: any FileSystem, options: [[UInt8]], debug: Bool, keepsErrorsBack: Bool
  ) throws(MountError) {
    dispatcher = Dispatcher(fileSystem)
    let context = Unmanaged.passUnretained(dispatcher).toOpaque()
    let made = StderrCapture.during(keepsErrorsBack) {
      withArguments(options, debug: debug) { arguments in
        var table = operationTable()
        return fuse_session_new(arguments, &table, MemoryLayout<fuse_lowlevel_ops>.size, context)
      }
    }
    guard let pointer = made.result else {
      throw MountError(message: made.words ?? "libfuse refused the options")
    }
    self.pointer = pointer
  }

  deinit { fuse_session_destroy(pointer) }

  /// How many requests of each kind came.
  public var requests: RequestCounters { dispatcher.counters }

  /// Mounts.
  /// - Parameter path: an absolute path of a directory.
  /// - Throws: the words of libfuse or of fusermount3.
  public func mount(at path: [UInt8], debug: Bool) throws(MountError) {
    let mounted = StderrCapture.during(!debug) {
      (path + [0]).withUnsafeBytes { bytes in
        fuse_session_mount(pointer, bytes.baseAddress?.assumingMemoryBound(to: CChar.self))
      }
    }
    if mounted.result != 0 { throw MountError(message: mounted.words ?? "mounting failed") }
    place = (path, MountTableEntry.top(at: path)?.device ?? 0)
    if dispatcher.passthrough != nil { _ = interpose(on: fuse_session_fd(pointer)) }
  }

  /// Talks to whoever holds the other end of a socket that keeps messages apart, instead of the kernel.
  func connect(to socket: consuming Descriptor) -> Bool { interpose(on: socket.release()) }

  /// Has what goes to and from the kernel pass by the handshake for passthrough.
  private func interpose(on file: CInt) -> Bool {
    var channel = fuse_custom_io()
    channel.read = { file, buffer, size, context in
      let count = read(file, buffer, size)
      if count > 0 { handshake(context)?.receive(UnsafeRawBufferPointer(start: buffer, count: count)) }
      return count
    }
    channel.writev = { file, vector, count, context in
      guard let vector, let handshake = handshake(context) else { return writev(file, vector, count) }
      return handshake.send(vector, count, to: file)
    }
    return fuse_session_custom_io(pointer, &channel, file) == 0
  }

  /// Answers one request.
  /// - Returns: false when the connection has ended.
  func answerOne() -> Bool {
    var buffer = fuse_buf()
    defer { free(buffer.mem) }
    guard fuse_session_receive_buf(pointer, &buffer) > 0 else { return false }
    fuse_session_process_buf(pointer, &buffer)
    return true
  }

  /// Answers the kernel's first request, INIT; from then on the mount is usable as soon as it is served.
  /// - Throws: when the kernel and libfuse cannot agree; the mount is gone then.
  public func negotiate() throws(MountError) {
    do throws(MountError) { try answerFirstRequest() } catch {
      fuse_session_unmount(pointer)
      throw error
    }
    raiseReadAhead()
  }

  /// Bytes that the kernel is to read ahead of who reads a file from the start, by one READ. The reply to a MiB
  /// would no longer fit the pipe by which it is spliced, unless that is made larger than users may make it.
  private static let readAhead = 512 << 10

  /// Has the kernel read further ahead than its 128 KiB, where we may say so: as root.
  private func raiseReadAhead() {
    let (major, minor) = majorMinor(place.device)
    let setting = Array("/sys/class/bdi/\(major):\(minor)/read_ahead_kb".utf8)
    try? withCName(setting) { name throws(Errno) in
      try Descriptor.open(name, [.write]).writeInOneCall(Array("\(Self.readAhead >> 10)".utf8))
    }
  }

  private func answerFirstRequest() throws(MountError) {
    var buffer = fuse_buf()
    defer { free(buffer.mem) }
    var result: CInt
    repeat { result = fuse_session_receive_buf(pointer, &buffer) } while result == -EINTR
    guard result > 0 else { throw MountError(message: "the kernel closed the connection before it began") }
    fuse_session_process_buf(pointer, &buffer)
    if fuse_session_exited(pointer) != 0 {
      throw MountError(message: "the kernel's FUSE version and libfuse's do not fit")
    }
  }

  /// Tells `serve` that all threads have ended.
  private static let finished = SIGUSR1
  /// What `serve` waits for.
  private static let signals = SignalSet([SIGINT, SIGTERM, SIGHUP, finished])

  /// Goes on as a daemon: the calling process ends with success, and its child stays, with `/` as its
  /// working directory and no terminal.
  /// - Throws: when no process can be started; the mount is gone then.
  public func daemonize() throws(MountError) {
    // Who started us may send a signal as soon as the mount is there; it waits until there is an ear for it.
    Self.signals.block()
    if fuse_daemonize(0) == 0 { return }
    let error = Errno.current
    fuse_session_unmount(pointer)
    throw MountError(message: "cannot start a background process: \(error)")
  }

  /// Answers requests until the mount is unmounted or the process is told to end (SIGINT, SIGTERM); then
  /// the mount is gone and no thread is left.
  /// - Parameters:
  ///   - workers: how many requests are answered at once.
  /// - Throws: when the system has no room for the threads; the mount is gone then, too.
  ///   - onStart: called before the first request is answered; may start threads.
  ///   - onHangup: what SIGHUP does, run on the calling thread.
  ///   - beforeShutdown: called while requests are still answered; what it waits for may need that.
  public func serve(
    workers count: Int, lowLatency: Bool, onStart: () throws(Errno) -> Void, onHangup: () -> Void,
    beforeShutdown: () -> Void
  ) throws(MountError) {
    Self.signals.block()
    signal(SIGPIPE, SIG_IGN)
    defer { fuse_session_unmount(pointer) }
    do throws(Errno) {
      try Interrupt.installHandler()
      try onStart()
      let pool = try WorkerPool(session: self, count: count, lowLatency: lowLatency) {
        SignalSet.send(Self.finished)
      }
      while Self.signals.wait() == SIGHUP { onHangup() }
      beforeShutdown()
      fuse_session_exit(pointer)
      pool.join()
    } catch {
      throw MountError(message: "cannot start a thread: \(error)")
    }
  }

  /// Receives a request into the buffer.
  /// - Returns: whether there is one; nil when the session has ended.
  func receive(into buffer: inout fuse_buf) -> Bool? {
    if fuse_session_exited(pointer) != 0 { return nil }
    let result = fuse_session_receive_buf(pointer, &buffer)
    if result == -EINTR { return false }
    return result > 0 ? true : nil
  }

  /// Whether a request is there to be received.
  var hasRequest: Bool {
    var polled = pollfd(fd: fuse_session_fd(pointer), events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, 0) > 0
  }
}

/// The handshake of the session with this context.
private func handshake(_ context: UnsafeMutableRawPointer?) -> PassthroughNegotiation? {
  guard let context else { return nil }
  return Unmanaged<Dispatcher>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.passthrough }
}

/// libfuse's argument vector for these options.
private func withArguments<Result>(
  _ options: [[UInt8]], debug: Bool, _ body: (UnsafeMutablePointer<fuse_args>) -> Result
) -> Result {
  var arguments = fuse_args()
  defer { fuse_opt_free_args(&arguments) }
  fuse_opt_add_arg(&arguments, "bundlefs")
  if debug { fuse_opt_add_arg(&arguments, "-d") }
  for option in options {
    fuse_opt_add_arg(&arguments, "-o")
    // libfuse splits at commas and takes a backslash before one away.
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
