import CLibrary

/// The errnos with which write(2) to the control file fails, as `bundlefs-routes(5)` lists them. The raw value is the
/// errno's name, which a rejected line's result has.
public enum RouteErrno: String, CaseIterable, Sendable {
  /// The line, its URL or its pattern is malformed.
  case malformed = "EINVAL"
  /// No route matches the URL, no route has the name, or there is no such resource or layer.
  case noRoute = "ENOENT"
  /// An earlier pattern matches all URLs of the new one.
  case shadowed = "EEXIST"
  /// The line is longer than ``RouteURL/maxLength``, or the stack of layers is too high.
  case tooLong = "E2BIG"
  /// The caller may not change routes or layers.
  case notPermitted = "EPERM"
  /// The layer is neither a directory nor an archive.
  case notDirectory = "ENOTDIR"
  /// The mount cannot do that.
  case notSupported = "EOPNOTSUPP"
  /// A file in a layer is not readable.
  case forbidden = "EACCES"
  /// Reading a layer failed.
  case unreadable = "EIO"
  /// The line was not run: too many lines are held back, or the kernel lost a part of it. There is no result.
  case lost = "EAGAIN"
  /// The writer was interrupted before its first line was run. There is no result.
  case interrupted = "EINTR"

  /// The value in `errno`.
  public var number: CInt {
    switch self {
    case .malformed: EINVAL
    case .noRoute: ENOENT
    case .shadowed: EEXIST
    case .tooLong: E2BIG
    case .notPermitted: EPERM
    case .notDirectory: ENOTDIR
    case .notSupported: EOPNOTSUPP
    case .forbidden: EACCES
    case .unreadable: EIO
    case .lost: EAGAIN
    case .interrupted: EINTR
    }
  }

  /// The errno of a number; nil for one that no line fails with.
  public init?(number: CInt) {
    guard let errno = Self.allCases.first(where: { $0.number == number }) else { return nil }
    self = errno
  }
}
