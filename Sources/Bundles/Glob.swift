/// A pattern of glob(7) for whole names: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a character that is
/// meant as it is.
struct Glob: Sendable {
  fileprivate enum Token: Sendable {
    case anything
    case one
    case byte(UInt8)
    case range([ClosedRange<UInt8>], isNegated: Bool)
  }

  private var tokens: [Token] = []

  /// - Returns: nil if a bracket is not closed or a backslash ends it.
  init?(_ pattern: [UInt8]) {
    var rest = pattern[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "*"): tokens.append(.anything)
      case UInt8(ascii: "?"): tokens.append(.one)
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

  /// Whether a pattern has nothing that stands for something else.
  static func isLiteral(_ pattern: some Sequence<UInt8>) -> Bool {
    !pattern.contains { "*?[\\".utf8.contains($0) }
  }

  /// What names have to end with, if that is all that the pattern says.
  static func suffix(in pattern: [UInt8]) -> [UInt8]? {
    guard pattern.first == UInt8(ascii: "*"), pattern.count > 1, isLiteral(pattern[1...]) else { return nil }
    return Array(pattern[1...])
  }

  /// Whether the name is as the pattern says. The work is bounded by the product of their lengths: only the
  /// last `*` that was met is ever widened.
  func matches(_ name: [UInt8]) -> Bool {
    var (place, token) = (0, 0)
    var retry: (place: Int, token: Int)?
    while place < name.count || token < tokens.count {
      if token < tokens.count, case .anything = tokens[token] {
        retry = (place, token)
        token += 1
      } else if token < tokens.count, place < name.count, tokens[token].takes(name[place]) {
        place += 1
        token += 1
      } else if let (start, star) = retry, start < name.count {
        retry = (start + 1, star)
        (place, token) = (start + 1, star + 1)
      } else {
        return false
      }
    }
    return true
  }

  /// What follows an opening bracket, up to the closing one; one that comes first is meant as it is.
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
  func takes(_ byte: UInt8) -> Bool {
    switch self {
    case .anything: false
    case .one: true
    case .byte(let own): own == byte
    case .range(let ranges, let isNegated): ranges.contains { $0.contains(byte) } != isNegated
    }
  }
}
