import CFuse
import Glibc
import Posix

/// What is owed for requests of each kind.
public enum ReplyKind {
  /// An entry: LOOKUP.
  public enum Entry {}
  /// Attributes: GETATTR, SETATTR.
  public enum Attributes {}
  /// Bytes: READ, READLINK, READDIR, READDIRPLUS.
  public enum Bytes {}
  /// The value or the list of extended attributes, or its size.
  public enum ExtendedAttribute {}
  /// The file system's figures: STATFS.
  public enum Statfs {}
  /// An offset: LSEEK.
  public enum Offset {}
  /// A count of bytes: WRITE.
  public enum Write {}
  /// A directory's opening: OPENDIR.
  public enum OpenDirectory {}
  /// A file's opening: OPEN.
  public enum OpenFile {}
  /// Bytes: IOCTL.
  public enum Ioctl {}
  /// What can be done: POLL.
  public enum PollEvents {}
  /// Nothing but that it was done.
  public enum Status {}
}

/// The answer that a request is owed. It is paid exactly once: the methods that pay consume it, and one that
/// is dropped unpaid answers EIO, so that no program waits for ever.
public struct Reply<Kind>: ~Copyable, @unchecked Sendable {
  let request: fuse_req_t

  init(_ request: fuse_req_t) { self.request = request }

  deinit { fuse_reply_err(request, EIO) }

  /// Who asks.
  public var caller: Caller {
    let context = fuse_req_ctx(request)
    return Caller(user: context?.pointee.uid ?? 0, thread: context?.pointee.pid ?? 0)
  }

  /// Answers that the request failed. ENOTCONN, which a layer answers when it is the mount of a dead daemon, is told
  /// as EIO: from our mount it would say that we are dead, and whoever believes it clears our mount away.
  public consuming func fail(_ error: Errno) {
    fuse_reply_err(request, error == .socketNotConnected ? EIO : error.rawValue)
    discard self
  }
}

extension Reply where Kind == ReplyKind.Entry {
  /// Answers with an entry.
  /// - Returns: whether the kernel took it. If not (the program was interrupted), the lookup does not count.
  public consuming func send(_ entry: EntryReply) -> Bool {
    var parameters = entry.parameters
    let result = fuse_reply_entry(request, &parameters)
    discard self
    return result == 0
  }

  /// Answers that there is no such entry, and for how many seconds the kernel may keep that.
  public consuming func sendNegative(timeout: Double) {
    var parameters = fuse_entry_param()
    parameters.entry_timeout = timeout
    fuse_reply_entry(request, &parameters)
    discard self
  }
}

extension Reply where Kind == ReplyKind.Attributes {
  /// Answers with a node's attributes.
  public consuming func send(_ attributes: NodeAttributes) {
    var stat = attributes.stat
    fuse_reply_attr(request, &stat, attributes.timeout)
    discard self
  }
}

extension Reply where Kind == ReplyKind.Bytes {
  /// Answers with bytes, as many as there are.
  public consuming func send(_ bytes: UnsafeRawBufferPointer) {
    fuse_reply_buf(request, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    discard self
  }

  /// Answers with bytes.
  public consuming func send(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { bytes in
      _ = fuse_reply_buf(request, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    }
    discard self
  }

  /// Answers with a part of a file, which is not copied through this process's memory where that can be avoided.
  /// - Parameter size: bytes; fewer are there at the file's end.
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

  /// Answers with a directory's entries.
  /// - Returns: whether the kernel took them. If not, the lookups in them do not count.
  public consuming func send(_ buffer: borrowing DirectoryBuffer) -> Bool {
    let result = fuse_reply_buf(request, buffer.start, buffer.used)
    discard self
    return result == 0
  }
}

extension Reply where Kind == ReplyKind.ExtendedAttribute {
  /// Answers with a value or list, or with its size to a request that asks for that only (`size` 0).
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
  /// Answers with the figures.
  public consuming func send(_ figures: statvfs) {
    var figures = figures
    fuse_reply_statfs(request, &figures)
    discard self
  }
}

extension Reply where Kind == ReplyKind.Offset {
  /// Answers with an offset in bytes.
  public consuming func send(_ offset: Int64) {
    fuse_reply_lseek(request, off_t(offset))
    discard self
  }
}

extension Reply where Kind == ReplyKind.Write {
  /// Answers with the bytes that were taken.
  public consuming func send(count: Int) {
    fuse_reply_write(request, count)
    discard self
  }
}

extension Reply where Kind == ReplyKind.Ioctl {
  /// Answers with bytes.
  public consuming func send(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { _ = fuse_reply_ioctl(request, 0, $0.baseAddress, $0.count) }
    discard self
  }
}

extension Reply where Kind == ReplyKind.PollEvents {
  /// Answers with the events of poll(2) that are there.
  public consuming func send(events: CInt) {
    fuse_reply_poll(request, UInt32(bitPattern: events))
    discard self
  }
}

/// A reply that is paid later, by another thread.
public final class DeferredReply<Kind>: Sendable {
  private let reply: Locked<Reply<Kind>?>

  /// Keeps a reply.
  public init(_ reply: consuming Reply<Kind>) { self.reply = Locked(reply) }

  /// Hands the reply out, once.
  public func take() -> Reply<Kind>? { reply.withLock { $0.take() } }
}

extension Reply where Kind == ReplyKind.OpenDirectory {
  /// Answers that the directory is open; the kernel keeps no listing of it.
  public consuming func sendUncached() {
    var info = fuse_file_info()
    fuse_reply_open(request, &info)
    discard self
  }
}

extension Reply where Kind == ReplyKind.OpenFile {
  /// Answers that the file is open, and read through the kernel's cache, which is kept.
  /// - Returns: whether the kernel took it. If not, it is not closed either.
  public consuming func sendCached() -> Bool {
    var info = fuse_file_info()
    info.keep_cache = 1
    let result = fuse_reply_open(request, &info)
    discard self
    return result == 0
  }

  /// Answers that the file is open, and that the kernel is to read it by itself. All who have it open at a time
  /// must have it open in the same way, with the same file: else the kernel answers EIO to the later one.
  /// - Returns: as `sendCached`.
  public consuming func send(_ file: BackingFile) -> Bool {
    var opening = BackedOpening(file: file.rawValue)
    let result = withUnsafeBytes(of: &opening) { bytes in
      fuse_reply_buf(request, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    }
    discard self
    return result == 0
  }
}

/// The kernel's struct fuse_open_out, of which libfuse 3.14 does not know the last member.
private struct BackedOpening {
  var handle: UInt64 = 0
  /// FOPEN_PASSTHROUGH.
  var flags: UInt32 = 1 << 7
  var file: Int32
}

extension Reply where Kind == ReplyKind.Status {
  /// Answers that it was done.
  public consuming func send() {
    fuse_reply_err(request, 0)
    discard self
  }
}
