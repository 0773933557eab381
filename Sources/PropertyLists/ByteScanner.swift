import CLibrary

/// A text and the position up to which it is parsed.
public struct ByteScanner: Sendable {
  /// The text.
  public let text: [UInt8]
  /// The index of the next byte.
  public private(set) var offset = 0

  /// Begins at the start of a text.
  public init(_ text: [UInt8]) { self.text = text }

  /// The next byte; nil at the end.
  public var next: UInt8? { offset < text.count ? text[offset] : nil }

  /// Consumes and returns the next byte; nil at the end.
  public mutating func pop() -> UInt8? {
    guard offset < text.count else { return nil }
    defer { offset += 1 }
    return text[offset]
  }

  /// Consumes a word if it is next.
  public mutating func take(_ word: StaticString) -> Bool {
    let count = word.utf8CodeUnitCount
    guard text.count - offset >= count else { return false }
    for index in 0..<count where text[offset + index] != word.utf8Start[index] { return false }
    offset += count
    return true
  }

  /// Consumes a byte if it is next.
  public mutating func take(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    offset += 1
    return true
  }

  /// Space, tab, and the line and page breaks.
  public mutating func skipWhitespace() { skip { $0 == 0x20 || (0x09...0x0D).contains($0) } }

  /// Consumes the bytes up to the first that does not match.
  public mutating func skip(while matches: (UInt8) -> Bool) {
    while offset < text.count, matches(text[offset]) { offset += 1 }
  }

  /// Consumes all up to and including the next occurrence of a byte.
  /// - Returns: the offset of the byte; nil if there is none, which consumes nothing.
  public mutating func skip(past byte: UInt8) -> Int? {
    let found = text.withUnsafeBytes { all -> Int? in
      guard let start = all.baseAddress, offset < all.count,
        let found = memchr(start + offset, CInt(byte), all.count - offset)
      else { return nil }
      return UnsafeRawPointer(found) - start
    }
    if let found { offset = found + 1 }
    return found
  }

  /// Consumes all up to and including the next occurrence of a word, or all if there is none.
  /// - Returns: whether it was found.
  public mutating func skip(past word: StaticString) -> Bool {
    while skip(past: word.utf8Start[0]) != nil {
      offset -= 1
      if take(word) { return true }
      offset += 1
    }
    offset = text.count
    return false
  }
}
