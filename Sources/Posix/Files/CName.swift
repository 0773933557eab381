import CLibrary

/// A NUL-terminated name or path, valid only during the call that receives it.
public typealias CName = UnsafePointer<CChar>

/// Calls the body with the bytes as a C string. A NUL among the bytes ends the string.
@inlinable
public func withCName<Result: ~Copyable>(_ bytes: [UInt8], _ body: (CName) throws(Errno) -> Result)
  throws(Errno)
  -> Result
{
  try withUnsafeTemporaryBytes(bytes.count + 1) { buffer throws(Errno) in
    buffer.copyBytes(from: bytes)
    buffer[bytes.count] = 0
    return try body(
      UnsafeRawPointer(buffer.baseAddress.unsafelyUnwrapped).assumingMemoryBound(to: CChar.self))
  }
}

/// Calls the body with an uninitialized buffer, which is on the stack if it is small.
@inlinable @inline(__always)
public func withUnsafeTemporaryBytes<Result: ~Copyable>(
  _ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Errno) -> Result
) throws(Errno) -> Result {
  // The standard library's function erases the error's type, so the error is returned as a value.
  let outcome: Swift.Result<Result, Errno> = withUnsafeTemporaryAllocation(byteCount: count, alignment: 16) {
    buffer in
    do throws(Errno) {
      return .success(try body(buffer))
    } catch {
      return .failure(error)
    }
  }
  return try outcome.get()
}

extension [UInt8] {
  /// The bytes of a C string, without NUL.
  @inlinable @inline(__always)
  public init(bytesOf name: CName) { self.init(UnsafeRawBufferPointer(start: name, count: strlen(name))) }
}

extension [UInt8] {
  /// Calls the body with the bytes.
  @inlinable
  public func withBytes<Result>(
    _ body: (UnsafeRawBufferPointer) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    // As above.
    let outcome: Swift.Result<Result, Errno> = withUnsafeBytes { bytes in
      do throws(Errno) {
        return .success(try body(bytes))
      } catch {
        return .failure(error)
      }
    }
    return try outcome.get()
  }
}

extension Sequence<[UInt8]> {
  /// The names, joined by `/`.
  public var joinedPath: [UInt8] { Array(joined(separator: CollectionOfOne(UInt8(ascii: "/")))) }
}

/// Calls realpath(3).
/// - Throws: ENOENT, EACCES, ENOTDIR, ELOOP.
public func realPath(_ path: [UInt8]) throws(Errno) -> [UInt8] {
  try withCName(path) { name throws(Errno) in
    guard let found = realpath(name, nil) else { throw .current }
    defer { free(found) }
    return Array(UnsafeRawBufferPointer(start: found, count: strlen(found)))
  }
}
