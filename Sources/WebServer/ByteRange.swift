/// The part of a file that the header `Range` asks for (RFC 9110, section 14).
public enum ByteRange: Equatable, Sendable {
  /// No header, or one that is not understood.
  case whole
  case part(first: UInt64, count: UInt64)
  /// Nothing of the file.
  case outside

  /// - Parameters:
  ///   - header: of one range of bytes; several are answered with the whole file.
  ///   - size: of the file.
  public init(_ header: String?, size: UInt64) {
    guard let header, header.hasPrefix("bytes=") else {
      self = .whole
      return
    }
    let ends = header.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
    let isNumber = { (text: Substring) in text.utf8.allSatisfy { (0x30...0x39).contains($0) } }
    guard ends.count == 2, ends.allSatisfy(isNumber), !(ends[0].isEmpty && ends[1].isEmpty) else {
      self = .whole
      return
    }
    self = Self.range(from: UInt64(ends[0]), to: UInt64(ends[1]), size, isSuffix: ends[0].isEmpty)
  }

  private static func range(
    from first: UInt64?, to last: UInt64?, _ size: UInt64, isSuffix: Bool
  ) -> ByteRange {
    if isSuffix {
      let count = min(last ?? .max, size)
      return count == 0 ? .outside : .part(first: size - count, count: count)
    }
    // A number beyond 64 bits is beyond every file.
    guard let first, first < size else { return .outside }
    let end = min(last ?? .max, size - 1)
    return end < first ? .whole : .part(first: first, count: end - first + 1)
  }
}
