import Glibc
import Posix

/// Runs the body with the calling thread's file system user and group set, without root's capabilities on files.
/// - Parameter user: the user and group ID; 0 for the thread's own.
public func asFileSystemUser<Result>(_ user: UInt32, _ body: () throws -> Result) rethrows -> Result {
  if user == 0 { return try body() }
  _ = GnuCalls.setfsgid(user)
  _ = GnuCalls.setfsuid(user)
  defer {
    _ = GnuCalls.setfsuid(geteuid())
    _ = GnuCalls.setfsgid(getegid())
  }
  return try body()
}

extension ByteString {
  /// Calls `fallocate(2)` on an open file.
  public static func allocate(_ file: CInt, mode: CInt, at offset: Int, count: Int) throws {
    if GnuCalls.fallocate(file, mode, off_t(offset), off_t(count)) < 0 {
      throw DiskError("fallocate", "", .current)
    }
  }
}
