import CFuse
import Glibc
import Posix

/// The agreement with the kernel that it reads some files by itself (FUSE_PASSTHROUGH, Linux 6.9).
///
/// libfuse 3.14 does not know of it. So what the kernel offers is read from the first request, INIT, on its way
/// to libfuse, and the wish is put into libfuse's reply; both are laid out as <linux/fuse.h> has it. That is over
/// before there are threads.
final class PassthroughNegotiation: @unchecked Sendable {
  private let depth: UInt32
  /// Whether the kernel knows of it.
  private(set) var isOffered = false
  private var isOver = false

  private static let initialize: UInt32 = 26
  /// FUSE_INIT_EXT: there are further flags.
  private static let hasFurtherFlags: UInt32 = 1 << 30
  /// FUSE_PASSTHROUGH among these.
  private static let passthrough: UInt32 = 1 << 5
  /// In a request: where its header has the kind of request, and INIT the flags.
  private static let (opcode, requestFlags, requestFurtherFlags) = (4, 52, 56)
  /// In the reply: where its header has the error, and INIT the flags and the depth.
  private static let (error, flags, furtherFlags, stackDepth) = (4, 28, 48, 52)

  /// - Parameter depth: as `ConnectionSettings.passthroughDepth`.
  init(depth: Int) { self.depth = UInt32(depth) }

  /// Looks at a message from the kernel.
  func receive(_ message: UnsafeRawBufferPointer) {
    if isOver || message.count < Self.requestFurtherFlags + 4 { return }
    func word(_ place: Int) -> UInt32 { message.loadUnaligned(fromByteOffset: place, as: UInt32.self) }
    isOffered =
      word(Self.opcode) == Self.initialize && word(Self.requestFlags) & Self.hasFurtherFlags != 0
      && word(Self.requestFurtherFlags) & Self.passthrough != 0
  }

  /// Sends a reply: the first one, if the kernel knows of it, with the wish put into it. With that all is said,
  /// and nothing is written here any more: from then on there are threads.
  func send(_ parts: UnsafePointer<iovec>, _ count: CInt, to file: CInt) -> Int {
    if isOver { return writev(file, parts, count) }
    isOver = true
    if !isOffered { return writev(file, parts, count) }
    var reply: [UInt8] = []
    for part in UnsafeBufferPointer(start: parts, count: Int(count)) {
      reply += UnsafeRawBufferPointer(start: part.iov_base, count: part.iov_len)
    }
    reply.withUnsafeMutableBytes { complete($0) }
    return write(file, reply, reply.count)
  }

  private func complete(_ reply: UnsafeMutableRawBufferPointer) {
    guard reply.count >= Self.stackDepth + 4,
      reply.loadUnaligned(fromByteOffset: Self.error, as: Int32.self) == 0
    else { return }
    func add(_ bits: UInt32, at place: Int) {
      let word = reply.loadUnaligned(fromByteOffset: place, as: UInt32.self)
      reply.storeBytes(of: word | bits, toByteOffset: place, as: UInt32.self)
    }
    add(Self.hasFurtherFlags, at: Self.flags)
    add(Self.passthrough, at: Self.furtherFlags)
    add(depth, at: Self.stackDepth)
  }
}

/// A file of ours from which the kernel reads when another is read that was opened with it.
public struct BackingFile: Hashable, Sendable {
  /// The kernel's number of it; above 0.
  let rawValue: Int32

  /// The file of that number.
  public init(rawValue: Int32) { self.rawValue = rawValue }
}

/// Where the kernel is told of files from which it is to read by itself. Tests put a stub in its place.
public protocol BackingFiles: Sendable {
  /// Why there can be none; nil if there can.
  var passthroughObstacle: String? { get }
  /// Registers an open file.
  /// - Throws: ELOOP on a file system that lies over too many others; EPERM without CAP_SYS_ADMIN; EINVAL and
  ///   EOPNOTSUPP for what cannot be read that way.
  func register(_ file: borrowing Descriptor) throws(Errno) -> BackingFile
  /// Takes that back. Whoever has opened something with it reads on.
  func unregister(_ file: BackingFile)
}

/// The kernel's struct fuse_backing_map.
private struct BackingMap {
  var file: Int32
  var flags: UInt32 = 0
  var padding: UInt64 = 0
}

/// FUSE_DEV_IOC_BACKING_OPEN, which takes a `BackingMap`, and FUSE_DEV_IOC_BACKING_CLOSE, which takes a number.
private let (openBacking, closeBacking): (UInt32, UInt32) = (0x4010_E501, 0x4004_E502)

extension Session: BackingFiles {
  public var passthroughObstacle: String? {
    guard let passthrough = dispatcher.passthrough, passthrough.isOffered else {
      return "the kernel does not offer it (Linux 6.9 with CONFIG_FUSE_PASSTHROUGH does)"
    }
    // The kernel looks at the privileges first, and then whether there is such a file.
    do throws(Errno) { _ = try register(number: -1) } catch {
      return error == .badFileDescriptor
        ? nil
        : error == .notPermitted ? "it needs the privilege CAP_SYS_ADMIN, which root has" : "\(error)"
    }
    return nil
  }

  public func register(_ file: borrowing Descriptor) throws(Errno) -> BackingFile {
    BackingFile(rawValue: try register(number: file.rawValue))
  }

  private func register(number: CInt) throws(Errno) -> Int32 {
    var map = BackingMap(file: number)
    return try Posix.ioctl(fuse_session_fd(pointer), openBacking, &map)
  }

  public func unregister(_ file: BackingFile) {
    var number = UInt32(bitPattern: file.rawValue)
    // It was registered, so there is nothing that could go wrong.
    _ = try? Posix.ioctl(fuse_session_fd(pointer), closeBacking, &number)
  }
}
