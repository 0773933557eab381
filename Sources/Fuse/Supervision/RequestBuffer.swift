import CFuse
import Glibc
import Posix

/// A request as the kernel sent it, to be processed again.
final class RequestBuffer: @unchecked Sendable {
  // libfuse does not change the bytes, and two threads may process them at once.
  private let buffer: fuse_buf
  let header: RequestHeader
  /// When it was received, in nanoseconds of the monotonic clock.
  let received: UInt64

  /// Copies a request: libfuse's buffer has room for the longest.
  init(copying original: fuse_buf, _ header: RequestHeader, received: UInt64) {
    (self.header, self.received) = (header, received)
    var copy = original
    copy.mem = malloc(original.size)
    if let target = copy.mem, let source = original.mem { memcpy(target, source, original.size) }
    buffer = copy
  }

  deinit { free(buffer.mem) }

  /// Has libfuse process the request.
  func process(in session: OpaquePointer) {
    var buffer = buffer
    fuse_session_process_buf(session, &buffer)
  }
}

/// The fields of `struct fuse_in_header` that are in use.
struct RequestHeader: Sendable, Equatable {
  let length: UInt32
  let opcode: UInt32
  let unique: UInt64
  let node: NodeID
  let caller: Int32

  /// FUSE_INTERRUPT.
  static let interrupt: UInt32 = 36
  private static let size = 40

  /// Reads the header of a request. A spliced WRITE has none in memory; its fields are 0.
  init(_ buffer: fuse_buf) {
    let isFile = buffer.flags.rawValue & FUSE_BUF_IS_FD.rawValue != 0
    guard !isFile, buffer.size >= Self.size, let bytes = buffer.mem else {
      (length, opcode, unique, node, caller) = (0, 0, 0, NodeID(rawValue: 0), 0)
      return
    }
    length = bytes.loadUnaligned(as: UInt32.self)
    opcode = bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)
    unique = bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
    node = NodeID(rawValue: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
    caller = bytes.loadUnaligned(fromByteOffset: 32, as: Int32.self)
  }

  /// The request that a FUSE_INTERRUPT is about; nil if the buffer has none.
  static func interrupted(in buffer: fuse_buf) -> UInt64? {
    guard let bytes = buffer.mem, buffer.size >= size + 8 else { return nil }
    return bytes.loadUnaligned(fromByteOffset: size, as: UInt64.self)
  }

  /// FORGET and BATCH_FORGET.
  var isForget: Bool { opcode == 2 || opcode == 42 }

  /// FSYNC and FSYNCDIR.
  var isSynchronization: Bool { opcode == 20 || opcode == 30 }

  /// A WRITE of a few short lines to the file of commands.
  func isShortCommand(to file: NodeID?) -> Bool {
    opcode == 16 && node == file && length <= Self.shortCommand
  }

  /// The headers and some ten lines.
  private static let shortCommand: UInt32 = 512

  /// Whether it can be processed twice: LOOKUP, GETATTR, READLINK, READ, STATFS, GETXATTR, LISTXATTR, OPENDIR,
  /// READDIR, IOCTL, READDIRPLUS, LSEEK.
  var isRepeatable: Bool { [1, 3, 5, 15, 17, 22, 23, 27, 28, 39, 44, 46].contains(opcode) }

  /// Whether it changes something, or waits for changes: SETATTR, SYMLINK, MKNOD, MKDIR, UNLINK, RMDIR, RENAME, LINK,
  /// WRITE, FSYNC, SETXATTR, REMOVEXATTR, FSYNCDIR, CREATE, FALLOCATE, RENAME2. It is put off before it has changed
  /// anything, or where it finds what it has done; but two threads must not process it at once.
  var isChange: Bool { [4, 6, 8, 9, 10, 11, 12, 13, 16, 20, 21, 24, 30, 35, 43, 45].contains(opcode) }
}
