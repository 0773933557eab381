import Glibc

/// Leases of an open file, fcntl(2). The kernel sends SIGIO when it breaks one, which ends a process that does not ignore it.
extension Descriptor {
  private static let (setLease, getLease): (CInt, CInt) = (1024, 1025)

  /// Takes a read lease: until it is released or broken, no process opens the file for writing.
  /// - Throws: EAGAIN if one has it open for writing, or mapped; EACCES, EINVAL where there are no leases.
  public func takeReadLease() throws(Errno) {
    _ = try checked { fcntl(rawValue, Self.setLease, CInt(F_RDLCK)) }
  }

  /// Whether a process waits for the end of the lease.
  public var isLeaseBroken: Bool { fcntl(rawValue, Self.getLease) != CInt(F_RDLCK) }
}
