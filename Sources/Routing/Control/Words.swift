/// The words of a line, by their offsets in it.
struct Words {
  /// The unread rest, without surrounding whitespace.
  private(set) var rest: Range<Int>

  init(_ line: Span<UInt8>) {
    let end = Self.endWithoutNewline(line)
    rest = Self.trimmed(0..<end, line)
  }

  /// The length of the line without a final LF or CR LF.
  static func endWithoutNewline(_ line: Span<UInt8>) -> Int {
    var end = line.count
    if end > 0, line[end - 1] == UInt8(ascii: "\n") { end -= 1 }
    if end > 0, line[end - 1] == UInt8(ascii: "\r") { end -= 1 }
    return end
  }

  /// Consumes a word; empty at the end of the line.
  mutating func next(_ line: Span<UInt8>) -> Range<Int> {
    var end = rest.lowerBound
    while end < rest.upperBound, !isWhitespace(line[end]) { end += 1 }
    let word = rest.lowerBound..<end
    rest = Self.trimmed(end..<rest.upperBound, line)
    return word
  }

  /// A range without whitespace around it.
  static func trimmed(_ range: Range<Int>, _ line: Span<UInt8>) -> Range<Int> {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, isWhitespace(line[start]) { start += 1 }
    while start < end, isWhitespace(line[end - 1]) { end -= 1 }
    return start..<end
  }

  static func isWhitespace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
  private func isWhitespace(_ byte: UInt8) -> Bool { Self.isWhitespace(byte) }
}
