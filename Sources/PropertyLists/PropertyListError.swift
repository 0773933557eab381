/// A position in a text.
public struct TextPosition: Sendable, Hashable, CustomStringConvertible {
  /// The number of the line, from 1. Lines end with LF, CR, or both.
  public let line: Int
  /// The number of the character in its line, from 1.
  public let column: Int

  /// The position of a byte in a text in UTF-8.
  public init(offset: Int, in text: [UInt8]) {
    let (lf, cr) = (UInt8(ascii: "\n"), UInt8(ascii: "\r"))
    let end = min(max(offset, 0), text.count)
    var (line, start) = (1, 0)
    for index in 0..<end where text[index] == lf || text[index] == cr {
      // CR LF is one end.
      if text[index] == cr, index + 1 < text.count, text[index + 1] == lf { continue }
      (line, start) = (line + 1, index + 1)
    }
    self.line = line
    column = String(decoding: text[start..<end], as: UTF8.self).count + 1
  }

  /// `LINE:COLUMN`.
  public var description: String { "\(line):\(column)" }
}

/// Why a property list or a table of strings is malformed.
public struct PropertyListError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The reason, for users.
  public let reason: String
  /// Where the error is; nil for binary property lists.
  public let position: TextPosition?

  /// Creates an error.
  public init(reason: String, position: TextPosition?) {
    self.reason = reason
    self.position = position
  }

  /// Creates an error at a byte of a text in UTF-8.
  public init(reason: String, offset: Int, in text: [UInt8]) {
    self.init(reason: reason, position: TextPosition(offset: offset, in: text))
  }

  /// `LINE:COLUMN: REASON`.
  public var description: String { position.map { "\($0): \(reason)" } ?? reason }
}

/// A property list cannot be parsed.
struct MalformedPropertyList: Error {
  let reason: String

  init(_ reason: String) { self.reason = reason }
}
