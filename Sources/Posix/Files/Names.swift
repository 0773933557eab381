import Glibc

extension [UInt8] {
  /// A name's bytes, without the NUL that ends it.
  @inline(__always)
  public init(bytesOf name: CName) { self.init(UnsafeRawBufferPointer(start: name, count: strlen(name))) }
}

extension Sequence<[UInt8]> {
  /// The names with slashes between.
  public var joinedPath: [UInt8] { Array(joined(separator: CollectionOfOne(UInt8(ascii: "/")))) }
}

/// How many processors are at work; at least 1.
public let processorCount = max(1, Int(sysconf(CInt(_SC_NPROCESSORS_ONLN))))
