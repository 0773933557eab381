import ControlClient
import Foundation
import Posix

/// Why a mount's control file cannot be used, or what it refuses.
public enum MountError: Error, Sendable, Hashable, LocalizedError, CustomStringConvertible {
  /// The URL is not one of a file.
  case notAFileURL(URL)
  /// There is no such directory.
  case noDirectory(path: String)
  /// No bundlefs is mounted there.
  case notMounted(path: String)
  /// The process that serves the mount is dead.
  case disconnected(path: String)
  /// The mount has no control file.
  case noControlFile(path: String)
  /// The caller may not read or write the control file.
  case notPermitted(path: String)
  /// The mount has dropped results before they were read, the ones with these sequence numbers.
  case missedResults(ClosedRange<UInt64>)
  /// The reader of ``RouteListener/notifications(mountPoint:named:since:)`` was too slow. The last notification that it got
  /// has this sequence number; another sequence continues from there.
  case fellBehind(sequence: UInt64)
  /// The mount, or this library before it asks the mount, refuses a route or a URL.
  case refused(RouteError)
  /// Another error of the system.
  case system(path: String, code: POSIXErrorCode)

  /// A sentence for users.
  public var description: String {
    switch self {
    case .notAFileURL(let url): "\(url): a mount point is given by a file URL"
    case .noDirectory(let path): "\(path): no such directory"
    case .notMounted(let path): "\(path): no bundlefs is mounted there"
    case .disconnected(let path):
      "\(path): the process that serves the mount is dead; remove it with 'bundlefs unmount \(path)'"
    case .noControlFile(let path): "\(path): the mount has no control file, by its option 'control=none'"
    case .notPermitted(let path):
      "\(path): its control file is for others; the mount's option 'routes_mode' says for whom"
    case .missedResults(let numbers):
      "the results \(numbers.lowerBound) to \(numbers.upperBound) were dropped before they were read; "
        + "the mount's option 'results' says how many are kept"
    case .fellBehind(let sequence):
      "the notifications after the result \(sequence) were posted faster than they were read; "
        + "listen again since \(sequence)"
    case .refused(let error): error.description
    case .system(let path, let code): "\(path): \(POSIXError(code).localizedDescription)"
    }
  }

  /// The sentence.
  public var errorDescription: String? { description }

  /// Finds a mount's control file and runs the body with it; what the system answers becomes an error that names the
  /// mount.
  static func naming<Result>(
    _ mountPoint: URL, _ body: (ControlFileLocation) throws(Errno) -> Result
  ) throws(MountError) -> Result {
    let path: [UInt8]
    do throws(URLError) { path = try mountPoint.filePath() } catch { throw .notAFileURL(mountPoint) }
    do throws(Errno) {
      let location = try ControlFileLocation(mountPoint: realPath(path))
      if location.exists { return try body(location) }
    } catch {
      throw MountError(error, mountPoint)
    }
    throw .noControlFile(path: mountPoint.path(percentEncoded: false))
  }

  init(_ errno: Errno, _ mountPoint: URL) {
    let path = mountPoint.path(percentEncoded: false)
    switch errno {
    case .inappropriateIOCTLForDevice: self = .notMounted(path: path)
    case .noSuchFileOrDirectory, .notDirectory: self = .noDirectory(path: path)
    case .socketNotConnected: self = .disconnected(path: path)
    case .permissionDenied, .notPermitted: self = .notPermitted(path: path)
    default: self = .system(path: path, code: POSIXError(errno).code)
    }
  }
}
