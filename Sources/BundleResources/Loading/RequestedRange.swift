/// One range of the header `Range`, in bytes, as RFC 9110, section 14.1.2, defines it.
enum RequestedRange: Equatable, Sendable {
  /// From a byte on, through another one or to the end.
  case from(Int, through: Int?)
  /// The last bytes.
  case last(Int)

  /// - Parameter header: the header's value.
  /// - Returns: nil if it is malformed, has several ranges or another unit: a server may then send the whole content.
  init?(_ header: String) {
    let parts = header.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].lowercased() == "bytes" else { return nil }
    let ends = parts[1].split(separator: "-", omittingEmptySubsequences: false).map {
      $0.filter { $0 != " " }
    }
    guard ends.count == 2 else { return nil }
    switch (ends[0].isEmpty, ends[1].isEmpty) {
    case (true, true): return nil
    case (true, false):
      guard let count = Self.number(ends[1]) else { return nil }
      self = .last(count)
    case (false, true):
      guard let first = Self.number(ends[0]) else { return nil }
      self = .from(first, through: nil)
    case (false, false):
      guard let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last else {
        return nil
      }
      self = .from(first, through: last)
    }
  }

  init(_ range: Range<Int>) {
    self = range.isEmpty ? .last(0) : .from(range.lowerBound, through: range.upperBound - 1)
  }

  /// What a content of that length has of it; empty if nothing.
  func part(of length: Int) -> Range<Int> {
    switch self {
    case .from(let first, let last):
      let start = min(first, length)
      // Without overflow: the last byte may be the greatest number.
      return start..<max(start, last.map { $0 < length ? $0 + 1 : length } ?? length)
    case .last(let count): return length - min(count, length)..<length
    }
  }

  /// A number of digits; the greatest one if it is too large for an Int.
  private static func number(_ text: String) -> Int? {
    guard text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else { return nil }
    return Int(text) ?? .max
  }
}
