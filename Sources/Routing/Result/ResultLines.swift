/// A line of the control file that holds a result.
public struct ResultLine: Sendable {
  /// The line without its newline.
  public let bytes: [UInt8]
  /// The sequence number.
  public let sequence: UInt64

  private static let prefix = Array(#"{"sequence":"#.utf8)

  /// Parses a line; nil if it is not a complete result.
  public init?(_ line: ArraySlice<UInt8>) {
    guard line.starts(with: Self.prefix), line.last == UInt8(ascii: "}") else { return nil }
    let digits = line.dropFirst(Self.prefix.count).prefix(while: \.isDigit)
    // Sequence numbers start at 1.
    guard let sequence = UInt64(String(decoding: digits, as: UTF8.self)), sequence > 0 else { return nil }
    self.sequence = sequence
    bytes = Array(line)
  }

  /// Whether this is the result of a URL or a command.
  public func isResult(of line: [UInt8]) -> Bool {
    let member = Array(#""url":"#.utf8)
    // It follows the number and the time, in which no quotation mark is escaped.
    guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: member) }) else { return false }
    let value = JSONWriter.quoted(String(escaping: line)) + #","outcome":"#
    return bytes[(start + member.count)...].starts(with: value.utf8)
  }

  /// Whether the outcome is `rejected`.
  public var isRejected: Bool { contains(#","outcome":"rejected","errno":"#) }

  /// Whether this is a notification with one of the names.
  public func isPosted(as names: [[UInt8]]) -> Bool {
    names.contains {
      contains(#","outcome":"posted","notification":\#(JSONWriter.quoted(String(escaping: $0)))"#)
    }
  }

  /// Searches for members. A match cannot be inside a string, where quotation marks are escaped.
  private func contains(_ text: String) -> Bool {
    let pattern = Array(text.utf8)
    return bytes.indices.contains { bytes[$0...].starts(with: pattern) }
  }
}
