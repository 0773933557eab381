/// The self-checking content of the stress tests' files: a single repeated byte, determined by the length.
enum StressPattern {
  /// The byte of all files outside the layers, which no layer contains.
  static let outside = UInt8(ascii: "Z")

  /// The flaw in a content; nil if it is valid.
  static func flaw(in content: [UInt8], isReplacedOnly: Bool) -> String? {
    if content.contains(outside) { return "read from outside the layers" }
    guard isReplacedOnly, let first = content.first else { return nil }
    if let other = content.firstIndex(where: { $0 != first }) {
      return "torn: \(first) up to \(other), then \(content[other]), \(content.count) bytes"
    }
    if UInt8(ascii: "a") + UInt8(content.count % 26) != first {
      return "torn: \(content.count) bytes of \(first)"
    }
    return nil
  }
}
