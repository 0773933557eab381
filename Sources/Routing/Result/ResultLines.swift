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
    contains(#""url":\#(JSONWriter.quoted(String(escaping: line))),"outcome":"#)
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

/// Reads the results in a control file.
public enum ResultLines {
  /// Reads the results, oldest first; `text` reads the file from the start.
  /// - Returns: nil if no two reads agree, because of continuous writes.
  public static func read<Failure: Error>(
    by text: () throws(Failure) -> [UInt8]
  ) throws(Failure) -> [ResultLine]? {
    // Reading the file takes several READ requests, between which its content may shift, so a line may be torn.
    // Only lines that two reads agree on are returned. A busy writer can prevent agreement, hence the limit.
    for _ in 0..<1000 {
      guard let results = parsed(try text()), let others = parsed(try text()) else { continue }
      guard let first = results.first, let other = others.first, let last = results.last else {
        if results.isEmpty { return [] }
        continue
      }
      if other.sequence > last.sequence { continue }
      let start = max(first.sequence, other.sequence)
      let common = results.drop { $0.sequence < start }
      let same = others.drop { $0.sequence < start }
      if zip(common, same).allSatisfy({ $0.bytes == $1.bytes }), common.count <= same.count {
        return Array(common)
      }
    }
    return nil
  }

  /// - Returns: nil if the text is not a control file's: during a write, the page cache briefly holds the written
  ///   bytes at the offset of the write.
  private static func parsed(_ text: [UInt8]) -> [ResultLine]? {
    let lines = text.split(separator: UInt8(ascii: "\n")).drop { $0.starts(with: "route ".utf8) }
    let results = lines.compactMap { ResultLine($0) }
    let isWhole = text.isEmpty || text.last == UInt8(ascii: "\n")
    let isInOrder = zip(results, results.dropFirst()).allSatisfy { $0.sequence &+ 1 == $1.sequence }
    return isWhole && isInOrder && results.count == lines.count ? results : nil
  }
}
