import Glibc
import Posix

/// Runs the body with the calling thread's file system user and group set, without root's capabilities on files.
/// - Parameter user: the user and group ID; 0 for the thread's own.
public func asFileSystemUser<Result>(_ user: UInt32, _ body: () throws -> Result) rethrows -> Result {
  if user == 0 { return try body() }
  // `FileSystemUser.act` makes a thread keep its capabilities, for good.
  let keepsCapabilities: CInt = 1 << 2  // SECBIT_NO_SETUID_FIXUP
  let bits = GnuCalls.prctl(27 /* PR_GET_SECUREBITS */, 0, 0, 0, 0)
  _ = GnuCalls.prctl(28 /* PR_SET_SECUREBITS */, CUnsignedLong(bits & ~keepsCapabilities), 0, 0, 0)
  _ = GnuCalls.setfsgid(user)
  _ = GnuCalls.setfsuid(user)
  defer {
    _ = GnuCalls.setfsuid(geteuid())
    _ = GnuCalls.setfsgid(getegid())
    _ = GnuCalls.prctl(28 /* PR_SET_SECUREBITS */, CUnsignedLong(bits), 0, 0, 0)
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
