/// Property lists, of which only strings at the top level are of interest.
///
/// Foundation's parsers are not used: they recurse without a bound, take quadratic time, and trap for some binary
/// counts. These parsers visit each byte a constant number of times, keep only what was asked for, and do not recurse.
enum PropertyList {
  /// The strings of the dictionary that a property list is: XML, binary, or the OpenStep format
  /// `{ Key = "value"; }`, whose braces may be missing as in `.strings` files.
  ///
  /// A value that is not a string counts as absent; of repeated keys the last one counts. Parts of a binary property
  /// list that the result does not need are not checked.
  /// - Returns: nil if the text is malformed, nests deeper than ``PropertyListBuilder/maxDepth``, or is no dictionary.
  static func strings(in content: [UInt8], for keys: [String]) -> [String: String]? {
    if content.starts(with: "bplist".utf8) { return BinaryPropertyList(content)?.strings(for: keys) }
    guard let text = PropertyListText.utf8(content) else { return nil }
    let builder = PropertyListBuilder(keys: keys)
    var scanner = ByteScanner(text)
    scanner.skipWhitespace()
    do throws(MalformedPropertyList) {
      if scanner.next == UInt8(ascii: "<") {
        var parser = XMLPropertyList(scanner, builder)
        return try parser.parse()
      }
      var parser = OpenStepPropertyList(scanner, builder)
      return try parser.parse()
    } catch { return nil }
  }
}

/// A property list cannot be parsed.
struct MalformedPropertyList: Error {}
