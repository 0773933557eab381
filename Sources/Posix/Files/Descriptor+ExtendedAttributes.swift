import CLinux

/// Extended attributes, of `O_PATH` descriptors and symbolic links through `/proc/self/fd`.
extension Descriptor {
  /// Calls getxattr(2).
  /// - Throws: ENODATA; ERANGE if the buffer is too small; EOPNOTSUPP.
  /// - Returns: the size of the value; an empty buffer asks for the size only.
  public func extendedAttribute(_ name: CName, into buffer: UnsafeMutableRawBufferPointer) throws(Errno)
    -> Int
  {
    try checked { linux_getxattr(rawValue, name, buffer.baseAddress, buffer.count) }
  }

  /// Calls listxattr(2).
  /// - Returns: the names, each followed by NUL.
  public func extendedAttributeNames() throws(Errno) -> [UInt8] {
    try withProcPath(rawValue) { path throws(Errno) in
      while true {
        let size = try checked { linux_listxattr(path, nil, 0) }
        if size == 0 { return [] }
        do throws(Errno) {
          return try withUnsafeTemporaryBytes(size) { buffer throws(Errno) in
            let start = buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
            let count = try checked { linux_listxattr(path, start, size) }
            return [UInt8](buffer.prefix(count))
          }
        } catch {
          // The list grew between the two calls.
          if error != .outOfRange { throw error }
        }
      }
    }
  }

  /// Calls setxattr(2).
  public func setExtendedAttribute(
    _ name: CName, _ value: UnsafeRawBufferPointer, flags: CInt
  ) throws(Errno) {
    _ = try withProcPath(rawValue) { path throws(Errno) in
      try checked { linux_setxattr(path, name, value.baseAddress, value.count, flags) }
    }
  }

  /// Calls removexattr(2).
  /// - Throws: ENODATA, EOPNOTSUPP.
  public func removeExtendedAttribute(_ name: CName) throws(Errno) {
    _ = try withProcPath(rawValue) { path throws(Errno) in try checked { linux_removexattr(path, name) } }
  }

  /// The value of an attribute; nil without one.
  public func extendedAttribute(_ name: CName) throws(Errno) -> [UInt8]? {
    do throws(Errno) {
      return try readExtendedAttribute { buffer throws(Errno) in try extendedAttribute(name, into: buffer) }
    } catch {
      if error == .noData || error == .notSupported { return nil }
      throw error
    }
  }

  /// Whether this directory has an attribute.
  public func hasDirectoryAttribute(_ name: CName) throws(Errno) -> Bool {
    do throws(Errno) {
      _ = try directoryAttribute(name, into: UnsafeMutableRawBufferPointer(start: nil, count: 0))
      return true
    } catch {
      if error == .noData || error == .notSupported { return false }
      throw error
    }
  }

  /// Whether the value of an attribute of this directory is the single byte.
  public func directoryAttribute(_ name: CName, is byte: UInt8) throws(Errno) -> Bool {
    do throws(Errno) {
      return try withUnsafeTemporaryBytes(2) { buffer throws(Errno) in
        try directoryAttribute(name, into: buffer) == 1 && buffer[0] == byte
      }
    } catch {
      if error == .noData || error == .notSupported || error == .outOfRange || error == .notPermitted {
        return false
      }
      throw error
    }
  }

  /// As `extendedAttribute`, but faster.
  private func directoryAttribute(
    _ name: CName, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    do throws(Errno) {
      return try extendedAttribute(name, ofEntry: ".", into: buffer)
    } catch {
      if error != .noFunction && error != .notPermitted { throw error }
      return try extendedAttribute(name, into: buffer)
    }
  }

  /// Calls getxattrat(2) for an entry of this directory, which is not followed.
  /// - Throws: as `extendedAttribute`; ENOSYS if the kernel is older than 6.13; EPERM, too, if a seccomp filter rejects
  ///   the call.
  public func extendedAttribute(
    _ name: CName, ofEntry entry: CName, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    try checked { linux_getxattr_at(rawValue, entry, name, buffer.baseAddress, buffer.count) }
  }
}

/// The value that getxattr(2) reads.
/// - Parameter read: fills the buffer; an empty one asks for the size only.
public func readExtendedAttribute(
  by read: (UnsafeMutableRawBufferPointer) throws(Errno) -> Int
) throws(Errno) -> [UInt8] {
  while true {
    let size = try read(UnsafeMutableRawBufferPointer(start: nil, count: 0))
    if size == 0 { return [] }
    do throws(Errno) {
      return try withUnsafeTemporaryBytes(size) { buffer throws(Errno) in
        let count = try read(buffer)
        return [UInt8](buffer.prefix(count))
      }
    } catch {
      // The value grew between the two calls.
      if error != .outOfRange { throw error }
    }
  }
}

/// Formats `/proc/self/fd/N` without a String.
@inline(__always)
private func withProcPath<Result>(
  _ descriptor: CInt, _ body: (CName) throws(Errno) -> Result
) throws(Errno) -> Result {
  let prefix: StaticString = "/proc/self/fd/"
  return try withUnsafeTemporaryBytes(32) { buffer throws(Errno) in
    buffer.copyBytes(from: UnsafeRawBufferPointer(start: prefix.utf8Start, count: prefix.utf8CodeUnitCount))
    var digits = 1
    var rest = descriptor / 10
    while rest > 0 {
      digits += 1
      rest /= 10
    }
    var index = prefix.utf8CodeUnitCount + digits
    buffer[index] = 0
    rest = descriptor
    for _ in 0..<digits {
      index -= 1
      buffer[index] = UInt8(48 + rest % 10)
      rest /= 10
    }
    return try body(
      UnsafeRawPointer(buffer.baseAddress.unsafelyUnwrapped).assumingMemoryBound(to: CChar.self))
  }
}
