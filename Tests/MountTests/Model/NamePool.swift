import TestSupport

/// Names for generated trees: plain and unusual ones.
enum NamePool {
  static let plain: [ByteString] = ["a", "b", "c", "d", "e", "Info.plist", "Resources"]
  static let unusual: [ByteString] = [
    "ü.txt", ByteString([0xff, 0xfe]), ByteString([0x80, 0x61, 0xc3]), " with space ", "new\nline",
    "back\\slash",
    "...", ".hidden", ".wh", ".whx", "wh.a", "-rf", "a:b,c", "%2F", "*", ByteString([1, 2, 127]), "..data",
    "~",
    filled(0x4c, 255), filled(0xfe, 255), filled(0x57, 251), filled(0x58, 252),
  ]

  /// Chooses some of each.
  static func choose(using random: inout SplitMix64) -> [ByteString] {
    var plain = plain
    plain.shuffle(using: &random)
    var unusual = unusual
    unusual.shuffle(using: &random)
    return Array(plain.prefix(random.number(4...5)) + unusual.prefix(random.number(2...4)))
  }

  private static func filled(_ byte: UInt8, _ count: Int) -> ByteString {
    ByteString([UInt8](repeating: byte, count: count))
  }
}
