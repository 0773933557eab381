import CFuse
import Glibc
import Posix

/// A file registered with the kernel for passthrough (`backing_id`).
public struct BackingFile: Hashable, Sendable {
  /// The backing ID; positive.
  public let rawValue: Int32

  /// Creates a backing file from its ID.
  public init(rawValue: Int32) { self.rawValue = rawValue }
}

/// How a file is open.
public enum FileOpening: Equatable, Sendable {
  /// It is read and written by requests, through the kernel's page cache.
  case cached
  /// It is read and written by requests, each time (`FOPEN_DIRECT_IO`).
  case uncached
  /// The kernel reads and writes the backing file (`FOPEN_PASSTHROUGH`).
  case passed(BackingFile)
  /// The kernel has the backing file open, but reads and writes by requests (both flags).
  case writtenByRequests(BackingFile)
}

/// Registers files for passthrough with the kernel. Tests use a stub.
public protocol BackingFiles: Sendable {
  /// The reason why passthrough is unavailable; nil if it is available.
  var passthroughObstacle: String? { get }
  /// Registers an open file (`FUSE_DEV_IOC_BACKING_OPEN`).
  /// - Throws: ELOOP if the file system is stacked too deeply; EPERM without `CAP_SYS_ADMIN`; EINVAL, EOPNOTSUPP for
  ///   unsupported files.
  func register(_ file: borrowing Descriptor) throws(Errno) -> BackingFile
  /// Unregisters a file (`FUSE_DEV_IOC_BACKING_CLOSE`). Open files keep using it.
  func unregister(_ file: BackingFile)
}

/// struct fuse_backing_map.
private struct BackingMap {
  var file: Int32
  var flags: UInt32 = 0
  var padding: UInt64 = 0
}

/// `FUSE_DEV_IOC_BACKING_OPEN`, with a `BackingMap`, and `FUSE_DEV_IOC_BACKING_CLOSE`, with a backing ID.
private let (openBacking, closeBacking): (UInt32, UInt32) = (0x4010_E501, 0x4004_E502)

extension Session: BackingFiles {
  public var passthroughObstacle: String? {
    guard let passthrough = dispatcher.passthrough, passthrough.isOffered else {
      return "the kernel does not offer it (Linux 6.9 with CONFIG_FUSE_PASSTHROUGH does)"
    }
    // The kernel checks the privileges before the descriptor.
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
    // Cannot fail for a registered file.
    _ = try? Posix.ioctl(fuse_session_fd(pointer), closeBacking, &number)
  }
}
