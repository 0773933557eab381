import Foundation
import FoundationNetworking
import Glibc
import Layers
import Posix

/// A layer that cannot be opened.
struct PathError: Error {
  let errno: Errno
  let path: [UInt8]
  /// For users.
  let reason: String

  init(errno: Errno, path: [UInt8], reason: String? = nil) {
    (self.errno, self.path) = (errno, path)
    self.reason = reason ?? errno.description
  }

  init(_ error: ArchiveError, path: [UInt8]) {
    self.path = path
    switch error {
    case .unreadable(let errno): self.errno = errno
    case .noArchive, .noFile, .folder: errno = .notDirectory
    case .noFolder, .fileForFolder, .noInnerArchive: errno = .noSuchFileOrDirectory
    case .damaged, .damagedContainer, .part, .unsupported, .packedInnerArchive, .changing:
      errno = .notSupported
    }
    reason = error.message
  }
}

extension URLError {
  init(_ error: PathError) {
    let url = URL(fileURLWithPath: String(decoding: error.path, as: UTF8.self))
    let underlying = NSError(domain: NSPOSIXErrorDomain, code: Int(error.errno.rawValue))
    self.init(Self.code(of: error.errno), url, error.reason, underlying)
  }
}

extension POSIXError {
  init(_ errno: Errno) { self.init(POSIXErrorCode(rawValue: errno.rawValue) ?? .EIO) }
}

extension URLError {
  init(_ errno: Errno, _ url: URL) {
    let underlying = NSError(domain: NSPOSIXErrorDomain, code: Int(errno.rawValue))
    self.init(Self.code(of: errno), url, errno.description, underlying)
  }

  init(_ code: URLError.Code, _ url: URL, _ description: String, _ underlying: NSError? = nil) {
    var information: [String: Any] = [
      NSURLErrorFailingURLErrorKey: url,
      NSLocalizedDescriptionKey: "\(url.absoluteString): \(description)",
    ]
    information[NSUnderlyingErrorKey] = underlying
    self.init(code, userInfo: information)
  }

  private static func code(of errno: Errno) -> URLError.Code {
    switch errno.rawValue {
    case ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG: .fileDoesNotExist
    case EACCES, EPERM: .noPermissionsToReadFile
    case EISDIR: .fileIsDirectory
    case EINVAL: .badURL
    case ENOMEM, EFBIG: .dataLengthExceedsMaximum
    case EOPNOTSUPP, ENXIO, EMFILE, ENFILE: .cannotOpenFile
    default: .resourceUnavailable
    }
  }
}
