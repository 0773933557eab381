import Foundation
import CLibrary
import Layers
import Posix

/// A layer or a mount that cannot be used.
struct PathError: Error {
  let errno: Errno
  let path: [UInt8]
  /// For users.
  let reason: String
  let code: URLError.Code

  init(errno: Errno, path: [UInt8], reason: String? = nil, code: URLError.Code? = nil) {
    (self.errno, self.path) = (errno, path)
    self.reason = reason ?? errno.description
    self.code = code ?? URLError.code(of: errno)
  }

  init(_ error: ArchiveError, path: [UInt8]) {
    let errno: Errno
    var code: URLError.Code?
    switch error {
    case .unreadable(let error): errno = error
    case .remote: errno = .remoteIOError
    // There is something, which is not a layer.
    case .noArchive, .noFile, .folder, .fileForFolder: (errno, code) = (.notDirectory, .cannotOpenFile)
    case .noFolder, .noInnerArchive: errno = .noSuchFileOrDirectory
    case .damaged, .damagedContainer, .part, .unsupported, .packedInnerArchive, .changing:
      errno = .notSupported
    }
    self.init(errno: errno, path: path, reason: error.message, code: code)
  }
}

extension URLError {
  init(_ error: PathError) {
    self.init(
      error.code, URL(fileURLWithPath: String(decoding: error.path, as: UTF8.self)), error.reason, error.errno
    )
  }
}

extension POSIXError {
  init(_ errno: Errno) { self.init(POSIXErrorCode(rawValue: errno.rawValue) ?? .EIO) }
}

extension URLError {
  init(_ errno: Errno, _ url: URL) { self.init(Self.code(of: errno), url, errno.description, errno) }

  init(_ code: URLError.Code, _ url: URL, _ description: String, _ errno: Errno? = nil) {
    var information: [String: Any] = [
      NSURLErrorFailingURLErrorKey: url,
      NSLocalizedDescriptionKey: "\(url.isFileURL ? url.path : url.absoluteString): \(description)",
    ]
    if let errno {
      information[NSUnderlyingErrorKey] = NSError(domain: NSPOSIXErrorDomain, code: Int(errno.rawValue))
    }
    self.init(code, userInfo: information)
  }

  static func code(of errno: Errno) -> URLError.Code {
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
