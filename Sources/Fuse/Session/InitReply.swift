import CFuse
import Glibc
import Posix

/// Adds flags to the reply to INIT that libfuse 3.14 leaves out: `FUSE_PARALLEL_DIROPS`, though it knows the capability,
/// and `FUSE_HANDLE_KILLPRIV_V2`.
///
/// Without the former the kernel holds a directory's mutex during each LOOKUP and READDIR, so that one that waits for a layer
/// would hold up, unkillably, all others in the directory.
///
/// With the latter the file system takes the set-user-ID and set-group-ID bits away when a file changes. Else the kernel
/// asks for `security.capability` before each WRITE, also of the control file in a mount that takes no other writes.
enum InitReply {
  private static let clearingPrivileges: UInt32 = 1 << 28
  private static let parallelDirectoryOperations: UInt32 = 1 << 18
  /// Offsets of `flags`: in fuse_in_header and fuse_init_in, in fuse_out_header and fuse_init_out.
  private static let (requestFlags, replyFlags) = (52, 28)
  private static let (replyError, maxSize) = (4, 4096)

  /// Runs the body, which writes the reply, with a socket in place of `/dev/fuse`, and sends the completed reply.
  /// - Parameters:
  ///   - request: the INIT request.
  ///   - device: the descriptor of `/dev/fuse`. No other thread may use it meanwhile.
  /// - Throws: EMFILE; ENODEV if the mount is gone.
  static func completing(_ request: fuse_buf, to device: CInt, _ body: () -> Void) throws(Errno) {
    let offered =
      Self.word(at: Self.requestFlags, UnsafeRawBufferPointer(start: request.mem, count: request.size)) ?? 0
    let added = offered & (Self.parallelDirectoryOperations | Self.clearingPrivileges)
    if added == 0 { return body() }
    let kept = try Descriptor.duplicate(of: device)
    let socket = try SocketPair()
    try socket.far.replace(device)
    body()
    try kept.replace(device)
    while let reply = socket.near.receiveNonBlocking(upTo: Self.maxSize) {
      try kept.writeInOneCall(Self.completed(reply, added))
    }
  }

  private static func completed(_ reply: [UInt8], _ added: UInt32) -> [UInt8] {
    var reply = reply
    reply.withUnsafeMutableBytes { bytes in
      guard word(at: replyError, UnsafeRawBufferPointer(bytes)) == 0,
        let flags = word(at: replyFlags, UnsafeRawBufferPointer(bytes))
      else { return }
      bytes.storeBytes(of: flags | added, toByteOffset: replyFlags, as: UInt32.self)
    }
    return reply
  }

  private static func word(at offset: Int, _ bytes: UnsafeRawBufferPointer) -> UInt32? {
    bytes.count >= offset + 4 ? bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self) : nil
  }
}

/// A pair of connected `SOCK_SEQPACKET` sockets.
private struct SocketPair: ~Copyable {
  let near: Descriptor
  let far: Descriptor

  init() throws(Errno) {
    let ends = try Descriptor.socketPair(SOCK_SEQPACKET.rawValue)
    near = Descriptor(owning: ends.0)
    far = Descriptor(owning: ends.1)
  }
}

extension Descriptor {
  /// Makes another descriptor refer to this one's file.
  fileprivate borrowing func replace(_ other: CInt) throws(Errno) {
    if dup2(rawValue, other) < 0 || fcntl(other, F_SETFD, FD_CLOEXEC) < 0 { throw .current }
  }

  /// A message that is there already; nil if there is none.
  fileprivate borrowing func receiveNonBlocking(upTo size: Int) -> [UInt8]? {
    var message = [UInt8](repeating: 0, count: size)
    let count = recv(rawValue, &message, size, CInt(MSG_DONTWAIT))
    return count > 0 ? Array(message[..<count]) : nil
  }
}
