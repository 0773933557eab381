import PropertyLists

extension InfoPlist {
  /// Parses a property list: XML, binary, or the OpenStep format `{ Key = "value"; }`. A value that is not a valid
  /// string counts as absent.
  /// - Returns: nil if the text is malformed or not a dictionary.
  init?(propertyList content: [UInt8]) {
    let (identifier, region) = ("CFBundleIdentifier", "CFBundleDevelopmentRegion")
    guard let strings = PropertyList.strings(in: content, for: [identifier, region]) else { return nil }
    self.init(
      identifier: strings[identifier].flatMap(Self.validated),
      developmentRegion: strings[region].flatMap(Self.validated))
  }

  /// Rejects strings that cannot be file names: a region is part of a folder's name.
  private static func validated(_ text: String) -> String? {
    (1...255).contains(text.utf8.count) && !text.utf8.contains(0) && !text.contains("/") ? text : nil
  }
}
