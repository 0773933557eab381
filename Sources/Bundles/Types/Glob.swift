/// A glob(7) pattern for whole names: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` to escape a character.
///
/// This is not fnmatch(3), which treats a malformed bracket as literal text and a reversed range (`[c-a]`) as empty,
/// depends on the locale, and cannot match names with NUL.
struct Glob: Sendable {
  fileprivate enum Token: Sendable {
    case any
    case single
    case byte(UInt8)
    case range([ClosedRange<UInt8>], isNegated: Bool)
  }

  private var tokens: [Token] = []

  /// nil if a bracket is not closed or the pattern ends with a backslash.
  init?(_ pattern: [UInt8]) {
    var rest = pattern[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "*"): tokens.append(.any)
      case UInt8(ascii: "?"): tokens.append(.single)
      case UInt8(ascii: "["):
        guard let range = Self.range(&rest) else { return nil }
        tokens.append(range)
      case UInt8(ascii: "\\"):
        guard let next = rest.popFirst() else { return nil }
        tokens.append(.byte(next))
      default: tokens.append(.byte(byte))
      }
    }
  }

  static func isLiteral(_ pattern: some Sequence<UInt8>) -> Bool {
    !pattern.contains { "*?[\\".utf8.contains($0) }
  }

  /// The literal after a leading `*`; nil for other patterns.
  static func suffix(in pattern: [UInt8]) -> [UInt8]? {
    guard pattern.first == UInt8(ascii: "*"), pattern.count > 1, isLiteral(pattern[1...]) else { return nil }
    return Array(pattern[1...])
  }

  /// Whether the name matches. Only the last `*` backtracks, so the time is at most the product of the lengths.
  func matches(_ name: [UInt8]) -> Bool {
    var (index, token) = (0, 0)
    var retry: (index: Int, token: Int)?
    while index < name.count || token < tokens.count {
      if token < tokens.count, case .any = tokens[token] {
        retry = (index, token)
        token += 1
      } else if token < tokens.count, index < name.count, tokens[token].matches(name[index]) {
        index += 1
        token += 1
      } else if let (start, star) = retry, start < name.count {
        retry = (start + 1, star)
        (index, token) = (start + 1, star + 1)
      } else {
        return false
      }
    }
    return true
  }

  /// Parses a bracket expression after `[`. A closing bracket in first position is literal.
  private static func range(_ rest: inout ArraySlice<UInt8>) -> Token? {
    let isNegated = rest.first == UInt8(ascii: "!") || rest.first == UInt8(ascii: "^")
    if isNegated { rest.removeFirst() }
    var ranges: [ClosedRange<UInt8>] = []
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "]"), !ranges.isEmpty { return .range(ranges, isNegated: isNegated) }
      let last = rest.dropFirst().first
      if rest.first == UInt8(ascii: "-"), let last, last != UInt8(ascii: "]") {
        rest.removeFirst(2)
        ranges.append(min(byte, last)...max(byte, last))
      } else {
        ranges.append(byte...byte)
      }
    }
    return nil
  }
}

extension Glob.Token {
  func matches(_ byte: UInt8) -> Bool {
    switch self {
    case .any: false
    case .single: true
    case .byte(let own): own == byte
    case .range(let ranges, let isNegated): ranges.contains { $0.contains(byte) } != isNegated
    }
  }
}
