import CLibrary

/// The encoding of names in archives that are not flagged as UTF-8.
public struct NameEncoding: Sendable, Hashable, CustomStringConvertible {
  let name: String

  /// Its name.
  public var description: String { name }

  /// - Parameter name: as for `iconv(1)`.
  /// - Returns: nil if the system has no such encoding.
  public init?(_ name: String) {
    self.name = name
    if NameConverter(self) == nil { return nil }
  }
}

/// Converts names to UTF-8. Not thread-safe.
final class NameConverter {
  private let descriptor: iconv_t
  /// No byte becomes more than four.
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4 * longest, alignment: 1)
  /// No longer name is valid.
  private static let longest = Int(PATH_MAX)

  init?(_ encoding: NameEncoding) {
    guard let opened = iconv_open("UTF-8", encoding.name), opened != iconv_t(bitPattern: -1) else {
      buffer.deallocate()
      return nil
    }
    descriptor = opened
  }

  deinit {
    iconv_close(descriptor)
    buffer.deallocate()
  }

  /// - Returns: nil if the name is not valid in the encoding; otherwise bytes that are valid until the next call.
  func convert(_ name: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    if name.count > Self.longest { return nil }
    _ = iconv(descriptor, nil, nil, nil, nil)
    // iconv(3) does not write to its input.
    var input = UnsafeMutablePointer(mutating: name.baseAddress?.assumingMemoryBound(to: CChar.self))
    var output = buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
    var (left, room) = (name.count, buffer.count)
    if iconv(descriptor, &input, &left, &output, &room) != 0 || left > 0 { return nil }
    return UnsafeRawBufferPointer(rebasing: buffer[..<(buffer.count - room)])
  }
}
