import PropertyLists

extension StringTable {
  /// The table as a text in the encoding of another file; in UTF-8 if that is no text.
  public func written(as content: [UInt8]) -> [UInt8] {
    Self.text(content)?.encode(written()) ?? written()
  }

  /// - Returns: nil for property lists.
  static func text(_ content: [UInt8]) -> PropertyListText? {
    if case .binary = PropertyList.Format(of: content) { return nil }
    guard let text = PropertyListText(content) else { return nil }
    if case .xml = PropertyList.Format(of: text.utf8) { return nil }
    return text
  }
}
