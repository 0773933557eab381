import CLibrary

/// An error number of errno(3).
public struct Errno: Error, RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The positive number.
  public let rawValue: CInt

  /// The error with that number.
  @inlinable public init(rawValue: CInt) { self.rawValue = rawValue }

  /// The calling thread's errno, valid only directly after a failed call.
  public static var current: Errno { Errno(rawValue: errno) }

  /// Operation not permitted.
  public static let notPermitted = Errno(rawValue: EPERM)
  /// No such file or directory.
  public static let noSuchFileOrDirectory = Errno(rawValue: ENOENT)
  /// Interrupted system call.
  public static let interrupted = Errno(rawValue: EINTR)
  /// Input/output error.
  public static let ioError = Errno(rawValue: EIO)
  /// Resource temporarily unavailable.
  public static let resourceTemporarilyUnavailable = Errno(rawValue: EAGAIN)
  /// Permission denied.
  public static let permissionDenied = Errno(rawValue: EACCES)
  /// Device or resource busy.
  public static let resourceBusy = Errno(rawValue: EBUSY)
  /// File exists.
  public static let fileExists = Errno(rawValue: EEXIST)
  /// Not a directory.
  public static let notDirectory = Errno(rawValue: ENOTDIR)
  /// Is a directory.
  public static let isDirectory = Errno(rawValue: EISDIR)
  /// Invalid argument.
  public static let invalidArgument = Errno(rawValue: EINVAL)
  /// Too many open files in this process.
  public static let tooManyOpenFiles = Errno(rawValue: EMFILE)
  /// Read-only file system.
  public static let readOnlyFileSystem = Errno(rawValue: EROFS)
  /// Directory not empty.
  public static let directoryNotEmpty = Errno(rawValue: ENOTEMPTY)
  /// Result too large, or a buffer too small.
  public static let outOfRange = Errno(rawValue: ERANGE)
  /// File name too long.
  public static let fileNameTooLong = Errno(rawValue: ENAMETOOLONG)
  /// Cross-device link.
  public static let crossDeviceLink = Errno(rawValue: EXDEV)
  /// Function not implemented.
  public static let noFunction = Errno(rawValue: ENOSYS)
  /// Too many levels of symbolic links.
  public static let tooManySymbolicLinkLevels = Errno(rawValue: ELOOP)
  /// No such extended attribute.
  public static let noData = Errno(rawValue: ENODATA)
  /// Operation not supported.
  public static let notSupported = Errno(rawValue: EOPNOTSUPP)
  /// Inappropriate ioctl for device.
  public static let inappropriateIOCTLForDevice = Errno(rawValue: ENOTTY)
  /// Transport endpoint is not connected, as from a FUSE mount whose daemon has died.
  public static let socketNotConnected = Errno(rawValue: ENOTCONN)
  /// Stale file handle.
  public static let staleFileHandle = Errno(rawValue: ESTALE)
  /// Bad file descriptor.
  public static let badFileDescriptor = Errno(rawValue: EBADF)
  /// No such device, as from `/dev/fuse` after the unmount.
  public static let noDevice = Errno(rawValue: ENODEV)
  /// No space left on device, as from inotify_add_watch(2) at the limit.
  public static let noSpace = Errno(rawValue: ENOSPC)
  /// Disk quota exceeded.
  public static let diskQuotaExceeded = Errno(rawValue: EDQUOT)
  /// Too many links.
  public static let tooManyLinks = Errno(rawValue: EMLINK)
  /// File too large.
  public static let fileTooLarge = Errno(rawValue: EFBIG)
  /// Cannot allocate memory.
  public static let noMemory = Errno(rawValue: ENOMEM)
  /// No such device or address, as from open(2) of a socket.
  public static let noSuchAddressOrDevice = Errno(rawValue: ENXIO)
  /// Connection timed out, as from a server that does not answer.
  public static let timedOut = Errno(rawValue: ETIMEDOUT)
  /// Remote I/O error, as from a server whose answers are wrong.
  public static let remoteIOError = Errno(rawValue: EREMOTEIO)

  /// Not of the kernel: the call was not made, since its layer may not answer and this thread must not wait for it.
  public static let deferred = Errno(rawValue: 100_000)
  /// Not of the kernel: the call was not made, since its layer has not answered in time and is left out.
  public static let skipped = Errno(rawValue: 100_001)

  /// Whether the file system itself has failed, such as a FUSE mount whose daemon has died or a disk that was removed.
  public var isFileSystemFailure: Bool { self == .ioError || self == .socketNotConnected }

  /// The message of strerror_r(3).
  public var description: String {
    if self == .deferred || self == .skipped { return "the layer does not answer" }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard let start = buffer.baseAddress, strerror_r(rawValue, start, buffer.count) == 0 else {
        return "error \(rawValue)"
      }
      return String(cString: start)
    }
  }
}

/// Throws errno if the call returns a negative value; repeats the call after EINTR.
@inline(__always)
func checked<Result: SignedInteger>(_ call: () -> Result) throws(Errno) -> Result {
  while true {
    let result = call()
    if result >= 0 { return result }
    let error = Errno.current
    if error != .interrupted { throw error }
  }
}
