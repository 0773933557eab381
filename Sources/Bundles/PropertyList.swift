import FoundationEssentials

/// Info.plist in any of the three formats: XML, binary, and the old one of NeXT, `{ Key = "value"; }`.
enum PropertyList {
  /// The facts of a bundle in a property list's bytes; nil if they are damaged, or no dictionary.
  ///
  /// A value that is no text counts as missing.
  static func information(in content: [UInt8]) -> BundleInformation? {
    guard XMLNesting.isShallow(content) else { return nil }
    guard let facts = try? PropertyListDecoder().decode(Facts.self, from: Data(content)) else { return nil }
    return BundleInformation(
      identifier: facts.identifier.flatMap(sensible),
      developmentRegion: facts.developmentRegion.flatMap(sensible))
  }

  /// The text, unless no bundle's could be such: a region is part of a folder's name.
  private static func sensible(_ text: String) -> String? {
    (1...255).contains(text.utf8.count) && !text.utf8.contains(0) && !text.contains("/") ? text : nil
  }

  private struct Facts: Decodable {
    let identifier: String?
    let developmentRegion: String?

    enum CodingKeys: String, CodingKey {
      case identifier = "CFBundleIdentifier"
      case developmentRegion = "CFBundleDevelopmentRegion"
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      identifier = try? container.decode(String.self, forKey: .identifier)
      developmentRegion = try? container.decode(String.self, forKey: .developmentRegion)
    }
  }
}

/// How deep the collections of an XML property list are nested.
///
/// The decoder calls itself for each level of XML, without a bound, and so would overflow the stack. It reads
/// the other formats within bounds of its own.
enum XMLNesting {
  /// No sensible property list comes near; the smallest stack of a thread holds this many levels.
  private static let deepest = 128

  /// Whether no more collections than the limit lie in each other.
  ///
  /// Comments, instructions and literal text are passed over, as the decoder does. NULs are, too: so UTF-16
  /// and UTF-32 count as the ASCII that they spell.
  static func isShallow(_ content: [UInt8]) -> Bool {
    if content.starts(with: "bplist".utf8) { return true }
    let text = content.contains(0) ? content.filter { $0 != 0 } : content
    var depth = 0
    var place = 0
    while let start = text[place...].firstIndex(of: UInt8(ascii: "<")) {
      let rest = text[start...]
      if let (opening, closing) = passedOver.first(where: { rest.starts(with: $0.opening) }) {
        guard let end = end(of: closing, in: rest.dropFirst(opening.count)) else { return depth <= deepest }
        place = end
        continue
      }
      if opening.contains(where: { rest.starts(with: $0) }), !isEmpty(rest) { depth += 1 }
      if closing.contains(where: { rest.starts(with: $0) }) { depth = max(0, depth - 1) }
      if depth > deepest { return false }
      place = start + 1
    }
    return true
  }

  /// Whether the element that begins the text ends with its first tag, as `<array/>` does.
  private static func isEmpty(_ text: ArraySlice<UInt8>) -> Bool {
    guard let end = text.firstIndex(of: UInt8(ascii: ">")) else { return false }
    return text[end - 1] == UInt8(ascii: "/")
  }

  private static let opening = ["<array", "<dict"].map { Array($0.utf8) }
  private static let closing = ["</array", "</dict"].map { Array($0.utf8) }
  private static let passedOver = [("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>")].map {
    (opening: Array($0.0.utf8), closing: Array($0.1.utf8))
  }

  /// The place after the mark.
  private static func end(of mark: [UInt8], in text: ArraySlice<UInt8>) -> Int? {
    var place = text.startIndex
    while let start = text[place...].firstIndex(of: mark[0]) {
      if text[start...].starts(with: mark) { return start + mark.count }
      place = start + 1
    }
    return nil
  }
}
