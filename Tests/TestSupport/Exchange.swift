import Glibc
import Posix

extension ByteString {
  /// Makes two names change places at once (renameat2(2) with RENAME_EXCHANGE).
  public func exchange(with other: ByteString) throws {
    typealias Rename = @convention(c) (CInt, CName, CInt, CName, UInt32) -> CInt
    guard let address = dlsym(nil, "renameat2") else { throw Errno.noFunction }
    let rename = unsafeBitCast(address, to: Rename.self)
    let (here, exchange): (CInt, UInt32) = (-100, 2)  // AT_FDCWD, RENAME_EXCHANGE
    _ = try call("renameat2") { from in other.withPointer { rename(here, from, here, $0, exchange) } }
  }
}
