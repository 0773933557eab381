import CFuse
import Glibc
import Posix

/// The kinds of reply, as type parameters of `Reply`.
public enum ReplyKind {
  /// LOOKUP, MKNOD, MKDIR, SYMLINK, LINK.
  public enum Entry {}
  /// GETATTR, SETATTR.
  public enum Attributes {}
  /// READ, READLINK, READDIR, READDIRPLUS.
  public enum Bytes {}
  /// GETXATTR, LISTXATTR.
  public enum ExtendedAttribute {}
  /// STATFS.
  public enum Statfs {}
  /// LSEEK.
  public enum Offset {}
  /// WRITE.
  public enum Write {}
  /// OPENDIR.
  public enum OpenDirectory {}
  /// OPEN.
  public enum OpenFile {}
  /// IOCTL.
  public enum Ioctl {}
  /// POLL.
  public enum PollEvents {}
  /// UNLINK, RMDIR, RENAME and other requests whose reply is only an error number.
  public enum Status {}
}

/// The pending reply of a request. It is sent exactly once: the methods that send consume it, and one that is dropped
/// sends EIO, so that the calling program does not block forever.
public struct Reply<Kind>: ~Copyable, @unchecked Sendable {
  let request: fuse_req_t

  init(_ request: fuse_req_t) { self.request = request }

  deinit { fuse_reply_err(request, EIO) }

  /// The calling user and thread.
  public var caller: Caller {
    let context = fuse_req_ctx(request)
    return Caller(user: context?.pointee.uid ?? 0, thread: context?.pointee.pid ?? 0)
  }

  /// What the caller creates belongs to.
  public var credentials: Credentials {
    let context = fuse_req_ctx(request)
    return Credentials(
      user: context?.pointee.uid ?? 0, group: context?.pointee.gid ?? 0,
      umask: UInt32(context?.pointee.umask ?? 0), thread: context?.pointee.pid ?? 0)
  }

  /// Whether the kernel has sent the request again (`FUSE_NOTIFY_RESEND`), since a predecessor may have read it. What it
  /// asks for may have been done.
  public var isResent: Bool { RequestThread.request >> 63 != 0 }

  /// Sends an error. ENOTCONN from a layer on a dead FUSE mount is replaced by EIO: from this mount it would mean that
  /// this daemon has died, and programs would unmount it.
  ///
  /// `deferred` puts the request off, on a thread that can do so: it is processed again on a thread that may wait.
  public consuming func fail(_ error: Errno) {
    switch error {
    case .deferred where RequestThread.deferRequest(): fuse_reply_none(request)
    case .deferred, .skipped, .socketNotConnected: fuse_reply_err(request, EIO)
    default: fuse_reply_err(request, error.rawValue)
    }
    discard self
  }
}

extension Reply {
  /// Sends nothing: the process is about to hand over, and the kernel sends the request to its successor again.
  public consuming func leaveToSuccessor() {
    fuse_reply_none(request)
    discard self
  }
}

extension Reply where Kind == ReplyKind.Entry {
  /// Sends an entry.
  /// - Returns: whether the kernel accepted it. If not (the caller was interrupted), the lookup does not count.
  public consuming func send(_ entry: EntryReply) -> Bool {
    var parameters = entry.parameters
    let result = fuse_reply_entry(request, &parameters)
    discard self
    return result == 0
  }

  /// Sends a negative entry, which the kernel caches for `timeout` seconds.
  public consuming func sendNegative(timeout: Double) {
    var parameters = fuse_entry_param()
    parameters.entry_timeout = timeout
    fuse_reply_entry(request, &parameters)
    discard self
  }
}

extension Reply where Kind == ReplyKind.Attributes {
  /// Sends attributes.
  public consuming func send(_ attributes: NodeAttributes) {
    var stat = attributes.stat
    fuse_reply_attr(request, &stat, attributes.timeout)
    discard self
  }
}

extension Reply where Kind == ReplyKind.Bytes {
  /// Sends bytes.
  public consuming func send(_ bytes: UnsafeRawBufferPointer) {
    fuse_reply_buf(request, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    discard self
  }

  /// Sends bytes.
  public consuming func send(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { bytes in
      _ = fuse_reply_buf(request, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    }
    discard self
  }

  /// Sends a part of a file, spliced if possible.
  /// - Parameter size: the maximum size in bytes; fewer are sent at the end of the file.
  public consuming func send(_ file: borrowing Descriptor, at offset: Int64, size: Int) {
    var vector = fuse_bufvec()
    vector.count = 1
    vector.buf.size = size
    vector.buf.flags = fuse_buf_flags(FUSE_BUF_IS_FD.rawValue | FUSE_BUF_FD_SEEK.rawValue)
    vector.buf.fd = file.rawValue
    vector.buf.pos = off_t(offset)
    fuse_reply_data(request, &vector, fuse_buf_copy_flags(0))
    discard self
  }

  /// Sends directory entries.
  /// - Returns: whether the kernel accepted them. If not, their lookups do not count.
  public consuming func send(_ buffer: borrowing DirectoryBuffer) -> Bool {
    let result = fuse_reply_buf(request, buffer.start, buffer.used)
    discard self
    return result == 0
  }
}

extension Reply where Kind == ReplyKind.ExtendedAttribute {
  /// Sends a value or list; its size only if `size` is 0; ERANGE if it is longer than `size`.
  public consuming func send(_ value: [UInt8], size: Int) {
    if size == 0 {
      fuse_reply_xattr(request, value.count)
    } else if value.count > size {
      fuse_reply_err(request, ERANGE)
    } else {
      value.withUnsafeBytes { bytes in
        _ = fuse_reply_buf(request, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
      }
    }
    discard self
  }
}

extension Reply where Kind == ReplyKind.Statfs {
  /// Sends the statistics.
  public consuming func send(_ statistics: statvfs) {
    var statistics = statistics
    fuse_reply_statfs(request, &statistics)
    discard self
  }
}

extension Reply where Kind == ReplyKind.Offset {
  /// Sends an offset in bytes.
  public consuming func send(_ offset: Int64) {
    fuse_reply_lseek(request, off_t(offset))
    discard self
  }
}

extension Reply where Kind == ReplyKind.Write {
  /// Sends the number of bytes written.
  public consuming func send(count: Int) {
    fuse_reply_write(request, count)
    discard self
  }
}

extension Reply where Kind == ReplyKind.Ioctl {
  /// Sends bytes.
  public consuming func send(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { _ = fuse_reply_ioctl(request, 0, $0.baseAddress, $0.count) }
    discard self
  }
}

extension Reply where Kind == ReplyKind.PollEvents {
  /// Sends the current events of poll(2).
  public consuming func send(events: CInt) {
    fuse_reply_poll(request, UInt32(bitPattern: events))
    discard self
  }
}

/// A reply that another thread sends later.
public final class DeferredReply<Kind>: Sendable {
  private let reply: Locked<Reply<Kind>?>
  private let unique = RequestThread.request
  private let pending: PendingReplies

  /// Takes ownership of a reply, on the thread that processes the request.
  /// - Parameter isPolled: as `setPolled`.
  public init(_ reply: consuming Reply<Kind>, isPolled: Bool = false) {
    pending = pendingReplies(of: reply.request)
    pending.add(unique, caller: reply.caller.thread, isPolled: isPolled)
    self.reply = Locked(reply)
  }

  deinit { if isLeft { pending.remove(unique) } }

  /// Whether it was not taken.
  private var isLeft: Bool {
    reply.withLock { reply in
      switch reply {
      case .some: true
      case .none: false
      }
    }
  }

  /// Whether the thread that works on the request looks at `isInterrupted` every few milliseconds, and then replies.
  /// Otherwise the reply is EINTR as soon as the caller is being killed.
  public func setPolled(_ isPolled: Bool) { pending.setPolled(isPolled, unique) }

  /// Whether the caller is being killed.
  public var isInterrupted: Bool { pending.isInterrupted(unique) }

  /// Whether the process hands over, so that it does not see changes of layers any more, and its threads end.
  public var isForSuccessor: Bool { pending.isHandingOver }

  /// Sends an error, since no thread is left that could do what is asked; leaves it to a successor if there is one.
  public func abandon(_ error: Errno) {
    guard let reply = take() else { return }
    if isForSuccessor { reply.leaveToSuccessor() } else { reply.fail(error) }
  }

  /// Returns the reply; nil after the first call.
  public func take() -> Reply<Kind>? {
    pending.remove(unique)
    return reply.withLock { $0.take() }
  }
}

extension Reply where Kind == ReplyKind.OpenDirectory {
  /// Sends that the directory is open and its listing is not cached.
  public consuming func sendUncached() {
    var info = fuse_file_info()
    fuse_reply_open(request, &info)
    discard self
  }
}

extension Reply where Kind == ReplyKind.OpenFile {
  /// Sends that the file is open, with `FOPEN_KEEP_CACHE`.
  /// - Returns: whether the kernel accepted it. If not, it sends no RELEASE.
  public consuming func sendCached() -> Bool {
    var info = fuse_file_info()
    info.keep_cache = 1
    let result = fuse_reply_open(request, &info)
    discard self
    return result == 0
  }

  /// Sends that the file is open. Concurrent opens of a node must use the same backing file, or none; otherwise the kernel
  /// fails the later one with EIO.
  /// - Returns: as `sendCached`.
  public consuming func send(_ opening: FileOpening) -> Bool {
    switch opening {
    case .cached: sendCached()
    case .uncached: send(OpenOut(flags: OpenOut.directIO))
    case .passed(let file): send(OpenOut(flags: OpenOut.passthrough, backingID: file.rawValue))
    case .writtenByRequests(let file):
      send(OpenOut(flags: OpenOut.passthrough | OpenOut.directIO, backingID: file.rawValue))
    }
  }

  private consuming func send(_ reply: OpenOut) -> Bool {
    var reply = reply
    let result = withUnsafeBytes(of: &reply) { bytes in
      fuse_reply_buf(request, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    }
    discard self
    return result == 0
  }
}

/// struct fuse_open_out with `backing_id`, which libfuse 3.14 lacks.
private struct OpenOut {
  var handle: UInt64 = 0
  var flags: UInt32
  var backingID: Int32 = 0

  /// `FOPEN_DIRECT_IO`, `FOPEN_PASSTHROUGH`.
  static let (directIO, passthrough): (UInt32, UInt32) = (1, 1 << 7)
}

extension Reply where Kind == ReplyKind.Status {
  /// Sends success.
  public consuming func send() {
    fuse_reply_err(request, 0)
    discard self
  }
}
