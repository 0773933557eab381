import PropertyLists

/// Why and where the text of a table is malformed.
struct ParseFailure: Error {
  let reason: String
  /// In bytes of UTF-8.
  let offset: Int
  /// Whether the text ended too early, so that its end may be the cause.
  var isAtEnd = false
}

extension PropertyListText {
  /// The error to report for a text that a parser has read.
  /// - Parameter failure: nil if the parser has read all of it.
  func error(after failure: ParseFailure?) -> PropertyListError? {
    if isMalformed, failure?.isAtEnd ?? true {
      return PropertyListError(reason: malformation, offset: utf8.count, in: utf8)
    }
    return failure.map { PropertyListError(reason: $0.reason, offset: $0.offset, in: utf8) }
  }
}
