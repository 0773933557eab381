import FoundationEssentials

extension InfoPlist {
  /// Parses a property list: XML, binary, or the OpenStep format `{ Key = "value"; }`. A value that is not a valid
  /// string counts as absent.
  /// - Returns: nil if the text is malformed or not a dictionary.
  init?(propertyList content: [UInt8]) {
    guard XMLNesting.isShallow(content) else { return nil }
    guard let keys = try? PropertyListDecoder().decode(Keys.self, from: Data(content)) else { return nil }
    self.init(
      identifier: keys.identifier.flatMap(Self.validated),
      developmentRegion: keys.developmentRegion.flatMap(Self.validated))
  }

  /// Rejects strings that cannot be file names: a region is part of a folder's name.
  private static func validated(_ text: String) -> String? {
    (1...255).contains(text.utf8.count) && !text.utf8.contains(0) && !text.contains("/") ? text : nil
  }
}

private struct Keys: Decodable {
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
