import Glibc
import Posix

/// Negotiates `FUSE_PASSTHROUGH` (Linux 6.9), which libfuse 3.14 does not support: reads the kernel's flags from the INIT
/// request, and adds its own to libfuse's reply. Runs before there are threads.
final class PassthroughNegotiation: @unchecked Sendable {
  private let depth: UInt32
  /// Whether the kernel supports passthrough.
  private(set) var isOffered = false
  private var isDone = false

  private static let initOpcode: UInt32 = 26
  /// `FUSE_INIT_EXT`: `flags2` is valid.
  private static let initExt: UInt32 = 1 << 30
  /// `FUSE_PASSTHROUGH`, in `flags2`.
  private static let passthrough: UInt32 = 1 << 5
  /// Offsets in the request: fuse_in_header and fuse_init_in.
  private static let (opcode, requestFlags, requestFlags2) = (4, 52, 56)
  /// Offsets in the reply: fuse_out_header and fuse_init_out.
  private static let (error, flags, flags2, stackDepth) = (4, 28, 48, 52)

  /// - Parameter depth: as `ConnectionSettings.passthroughDepth`.
  init(depth: Int) { self.depth = UInt32(depth) }

  /// Inspects a message from the kernel.
  func receive(_ message: UnsafeRawBufferPointer) {
    if isDone || message.count < Self.requestFlags2 + 4 { return }
    func word(_ offset: Int) -> UInt32 { message.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
    isOffered =
      word(Self.opcode) == Self.initOpcode && word(Self.requestFlags) & Self.initExt != 0
      && word(Self.requestFlags2) & Self.passthrough != 0
  }

  /// Writes a reply; adds the flags to the first one. After that, no property changes, as threads may exist.
  func send(_ parts: UnsafePointer<iovec>, _ count: CInt, to file: CInt) -> Int {
    if isDone { return writev(file, parts, count) }
    isDone = true
    if !isOffered { return writev(file, parts, count) }
    var reply: [UInt8] = []
    for part in UnsafeBufferPointer(start: parts, count: Int(count)) {
      reply += UnsafeRawBufferPointer(start: part.iov_base, count: part.iov_len)
    }
    reply.withUnsafeMutableBytes { addFlags(to: $0) }
    return write(file, reply, reply.count)
  }

  private func addFlags(to reply: UnsafeMutableRawBufferPointer) {
    guard reply.count >= Self.stackDepth + 4,
      reply.loadUnaligned(fromByteOffset: Self.error, as: Int32.self) == 0
    else { return }
    func add(_ bits: UInt32, at offset: Int) {
      let word = reply.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
      reply.storeBytes(of: word | bits, toByteOffset: offset, as: UInt32.self)
    }
    add(Self.initExt, at: Self.flags)
    add(Self.passthrough, at: Self.flags2)
    add(depth, at: Self.stackDepth)
  }
}
