/// The nesting depth of an XML property list.
///
/// `PropertyListDecoder` recurses for each level of XML without a limit and would overflow the stack. It limits
/// the depth of the other formats itself.
enum XMLNesting {
  /// This many levels fit the smallest thread stack.
  private static let maxDepth = 128

  /// Whether collections nest at most 128 levels deep.
  ///
  /// Like the decoder, the scan skips comments, processing instructions and CDATA sections. It also drops NULs, so
  /// that UTF-16 and UTF-32 are scanned as ASCII.
  static func isShallow(_ content: [UInt8]) -> Bool {
    if content.starts(with: "bplist".utf8) { return true }
    let text = content.contains(0) ? content.filter { $0 != 0 } : content
    var depth = 0
    var offset = 0
    while let start = text[offset...].firstIndex(of: UInt8(ascii: "<")) {
      let rest = text[start...]
      if let (opening, closing) = skipped.first(where: { rest.starts(with: $0.opening) }) {
        guard let end = end(of: closing, in: rest.dropFirst(opening.count)) else { return depth <= maxDepth }
        offset = end
        continue
      }
      if opening.contains(where: { rest.starts(with: $0) }), !isEmpty(rest) { depth += 1 }
      if closing.contains(where: { rest.starts(with: $0) }) { depth = max(0, depth - 1) }
      if depth > maxDepth { return false }
      offset = start + 1
    }
    return true
  }

  /// Whether the text begins with an empty element, such as `<array/>`.
  private static func isEmpty(_ text: ArraySlice<UInt8>) -> Bool {
    guard let end = text.firstIndex(of: UInt8(ascii: ">")) else { return false }
    return text[end - 1] == UInt8(ascii: "/")
  }

  private static let opening = ["<array", "<dict"].map { Array($0.utf8) }
  private static let closing = ["</array", "</dict"].map { Array($0.utf8) }
  private static let skipped = [("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>")].map {
    (opening: Array($0.0.utf8), closing: Array($0.1.utf8))
  }

  private static func end(of delimiter: [UInt8], in text: ArraySlice<UInt8>) -> Int? {
    var offset = text.startIndex
    while let start = text[offset...].firstIndex(of: delimiter[0]) {
      if text[start...].starts(with: delimiter) { return start + delimiter.count }
      offset = start + 1
    }
    return nil
  }
}
