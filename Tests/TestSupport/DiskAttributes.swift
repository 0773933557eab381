import Glibc
import Posix

/// Extended attributes by path; symbolic links are not followed.
extension ByteString {
  /// Calls `lgetxattr(2)`.
  public func attribute(_ name: ByteString) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 65536)
    let count = try call("getxattr \(name)") { path in
      name.withPointer { GnuCalls.lgetxattr(path, $0, &buffer, buffer.count) }
    }
    return [UInt8](buffer[..<count])
  }

  /// Calls `lsetxattr(2)`.
  public func setAttribute(_ name: ByteString, _ value: [UInt8]) throws {
    try call("setxattr \(name)") { path in
      name.withPointer { GnuCalls.lsetxattr(path, $0, value, value.count, 0) }
    }
  }

  /// Calls `lremovexattr(2)`.
  public func removeAttribute(_ name: ByteString) throws {
    try call("removexattr \(name)") { path in name.withPointer { GnuCalls.lremovexattr(path, $0) } }
  }

  /// Calls `llistxattr(2)`.
  public func attributeNames() throws -> [ByteString] {
    var buffer = [CChar](repeating: 0, count: 65536)
    let count = try call("listxattr") { GnuCalls.llistxattr($0, &buffer, buffer.count) }
    return buffer[..<count].split(separator: 0).map { name in
      ByteString(name.map { UInt8(bitPattern: $0) })
    }
  }
}
