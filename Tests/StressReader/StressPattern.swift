/// How the files of the stress tests check themselves: one byte over and over, which the length tells.
enum StressPattern {
  /// What no layer ever holds: the byte of all files outside.
  static let outside = UInt8(ascii: "Z")

  /// What is wrong with a content; nil: nothing.
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
