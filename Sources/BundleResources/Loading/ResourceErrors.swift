import Foundation
import FoundationNetworking
import Glibc
import Posix

/// A failed system call and its path.
struct PathError: Error {
  let errno: Errno
  let path: [UInt8]
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
