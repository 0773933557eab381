/// A result of the control file, as its line tells it.
public struct ResultLine: Sendable {
  /// The line, without its newline.
  public let bytes: [UInt8]
  /// The result's number.
  public let sequence: UInt64

  private static let start = Array(#"{"sequence":"#.utf8)

  /// Reads a line.
  /// - Returns: nil for one that is no whole result.
  public init?(_ line: ArraySlice<UInt8>) {
    guard line.starts(with: Self.start), line.last == UInt8(ascii: "}") else { return nil }
    let digits = line.dropFirst(Self.start.count).prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
    // They are counted from 1.
    guard let sequence = UInt64(String(decoding: digits, as: UTF8.self)), sequence > 0 else { return nil }
    self.sequence = sequence
    bytes = Array(line)
  }

  /// Whether it is what became of a URL or a line.
  public func isResult(of line: [UInt8]) -> Bool {
    contains(#""url":\#(JSONWriter.quoted(String(escaping: line))),"outcome":"#)
  }

  /// Whether the line was refused.
  public var isRejected: Bool { contains(#","outcome":"rejected","errno":"#) }

  /// Whether it is a notification of one of these names.
  public func isPosted(as names: [[UInt8]]) -> Bool {
    names.contains {
      contains(#","outcome":"posted","notification":\#(JSONWriter.quoted(String(escaping: $0)))"#)
    }
  }

  /// Inside a JSON text every quotation mark has a backslash before it, so that these can only be the
  /// result's own keys.
  private func contains(_ text: String) -> Bool {
    let wanted = Array(text.utf8)
    return bytes.indices.contains { bytes[$0...].starts(with: wanted) }
  }
}

/// The results that a control file has now.
public enum ResultLines {
  /// Reads them, oldest first.
  /// - Parameter text: reads the file, from its beginning.
  /// - Returns: nil if somebody writes without a pause, so that no two reads agree.
  public static func read<Failure: Error>(
    by text: () throws(Failure) -> [UInt8]
  ) throws(Failure) -> [ResultLine]? {
    // A read takes several requests, between which the file may move on, so that a line can be made up of two.
    // What two reads agree on is whole. Not for ever: who writes without a pause can keep them from agreeing.
    for _ in 0..<1000 {
      guard let results = whole(try text()), let others = whole(try text()) else { continue }
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

  /// - Returns: nil if what was read is no text of a control file: for a moment the kernel shows what somebody
  ///   is writing where he writes it.
  private static func whole(_ text: [UInt8]) -> [ResultLine]? {
    let lines = text.split(separator: UInt8(ascii: "\n")).drop { $0.starts(with: "route ".utf8) }
    let results = lines.compactMap { ResultLine($0) }
    let isWhole = text.isEmpty || text.last == UInt8(ascii: "\n")
    let isInOrder = zip(results, results.dropFirst()).allSatisfy { $0.sequence &+ 1 == $1.sequence }
    return isWhole && isInOrder && results.count == lines.count ? results : nil
  }
}
