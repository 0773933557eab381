import Glibc
import Posix

@testable import Fuse

/// The kernel's end of a FUSE connection, without a mount. Layouts and constants are those of <linux/fuse.h>.
final class KernelStub {
  let session: Session
  private let socket: Descriptor
  private var unique: UInt64 = 0

  /// A reply: its error (0 or negative) and its body.
  struct Answer {
    let error: CInt
    let body: [UInt8]

    func number<Number: FixedWidthInteger>(at offset: Int, as: Number.Type) -> Number {
      body.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Number.self) }
    }
  }

  enum Opcode: UInt32 {
    case lookup = 1, forget = 2, getattr = 3, mkdir = 9, unlink = 10, open = 14, read = 15, flush = 25,
      initialize = 26,
      opendir = 27
  }

  init(_ fileSystem: any FileSystem) throws {
    var ends: [CInt] = [0, 0]
    guard socketpair(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue), 0, &ends) == 0 else { throw Errno.current }
    socket = Descriptor(owning: ends[0])
    // Captured output would include that of concurrent tests.
    session = try Session(fileSystem: fileSystem, options: [], debug: false, capturesErrors: false)
    guard session.connect(to: Descriptor(owning: ends[1])) else { throw Errno.ioError }
  }

  /// The flags that the session selects from all of protocol 7.38.
  func negotiate() throws -> UInt32 { try initialize().number(at: 12, as: UInt32.self) }

  /// Sends INIT and returns the reply.
  /// - Parameter flags2: the offered flags beyond 32 bits; 0 without `FUSE_INIT_EXT`.
  func initialize(flags2: UInt32 = 0) throws -> Answer {
    var body: [UInt8] = []
    let flags: UInt32 = 0x3FFF_FFFF | (flags2 == 0 ? 0 : 1 << 30)
    for word: UInt32 in [7, 38, 131_072, flags, flags2] { body += bytes(of: word) }
    body += [UInt8](repeating: 0, count: 44)
    return try ask(.initialize, node: 0, body)
  }

  /// Sends a request and returns the reply.
  func ask(_ opcode: Opcode, node: UInt64, _ body: [UInt8] = []) throws -> Answer {
    try send(opcode, node: node, body)
    var reply = [UInt8](repeating: 0, count: 1 << 17)
    let count = recv(socket.rawValue, &reply, reply.count, CInt(MSG_DONTWAIT))
    guard count >= 16 else { throw Errno.current }
    return reply.withUnsafeBytes { bytes in
      precondition(
        bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self) == unique, "the reply is to another request")
      return Answer(
        error: bytes.loadUnaligned(fromByteOffset: 4, as: CInt.self), body: Array(bytes[16..<count]))
    }
  }

  /// Whether another reply is pending.
  var hasAnotherReply: Bool {
    var byte: UInt8 = 0
    return recv(socket.rawValue, &byte, 1, CInt(MSG_DONTWAIT | MSG_PEEK)) > 0
  }

  func send(_ opcode: Opcode, node: UInt64, _ body: [UInt8] = []) throws {
    unique += 2
    var message = bytes(of: UInt32(40 + body.count)) + bytes(of: opcode.rawValue)
    message += bytes(of: unique) + bytes(of: node) + bytes(of: UInt32(0)) + bytes(of: UInt32(0))
    message += bytes(of: UInt32(getpid())) + bytes(of: UInt32(0)) + body
    guard Glibc.send(socket.rawValue, message, message.count, 0) == message.count else { throw Errno.current }
    guard session.answerOne() else { throw Errno.ioError }
  }

  private func bytes<Number: FixedWidthInteger>(of number: Number) -> [UInt8] {
    withUnsafeBytes(of: number.littleEndian) { Array($0) }
  }
}
