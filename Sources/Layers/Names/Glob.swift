/// A glob(7) pattern for whole names: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` to escape a character.
///
/// This is not fnmatch(3), which treats a malformed bracket as literal text and a reversed range (`[c-a]`) as empty,
/// depends on the locale, and cannot match names with NUL.
public struct Glob: Sendable {
  fileprivate enum Token: Sendable {
    case any
    case single
    case byte(UInt8)
    case range(ByteSet)
  }

  private var tokens: [Token] = []
  private static let maxNameLength = 255

  /// nil if a bracket is not closed, the pattern ends with a backslash, or no name is long enough to match it.
  public init?(_ pattern: [UInt8]) {
    var rest = pattern[...]
    // The name has a byte for each token but `*`, of which none follows another.
    while let byte = rest.popFirst(), tokens.count <= 2 * Self.maxNameLength {
      switch byte {
      case UInt8(ascii: "*"):
        if case .any = tokens.last { continue }
        tokens.append(.any)
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
    if !rest.isEmpty || tokens.count > 2 * Self.maxNameLength + 1 { return nil }
  }

  /// Whether a pattern matches nothing but itself.
  public static func isLiteral(_ pattern: some Sequence<UInt8>) -> Bool {
    !pattern.contains { "*?[\\".utf8.contains($0) }
  }

  /// The literal after a leading `*`; nil for other patterns.
  public static func suffix(in pattern: [UInt8]) -> [UInt8]? {
    guard pattern.first == UInt8(ascii: "*"), pattern.count > 1, isLiteral(pattern[1...]) else { return nil }
    return Array(pattern[1...])
  }

  /// Whether the name matches. Only the last `*` backtracks, so the time is at most the product of the lengths.
  public func matches(_ name: [UInt8]) -> Bool {
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
    var bytes = ByteSet()
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "]"), !bytes.isEmpty { return .range(isNegated ? bytes.inverted : bytes) }
      let last = rest.dropFirst().first
      if rest.first == UInt8(ascii: "-"), let last, last != UInt8(ascii: "]") {
        rest.removeFirst(2)
        for member in min(byte, last)...max(byte, last) { bytes.insert(member) }
      } else {
        bytes.insert(byte)
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
    case .range(let bytes): bytes.contains(byte)
    }
  }
}

/// A set of bytes, of constant size.
private struct ByteSet: Sendable {
  private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

  var isEmpty: Bool { words.0 | words.1 | words.2 | words.3 == 0 }

  var inverted: ByteSet {
    var set = ByteSet()
    set.words = (~words.0, ~words.1, ~words.2, ~words.3)
    return set
  }

  func contains(_ byte: UInt8) -> Bool { word(of: byte) & Self.bit(of: byte) != 0 }

  mutating func insert(_ byte: UInt8) {
    switch byte >> 6 {
    case 0: words.0 |= Self.bit(of: byte)
    case 1: words.1 |= Self.bit(of: byte)
    case 2: words.2 |= Self.bit(of: byte)
    default: words.3 |= Self.bit(of: byte)
    }
  }

  private func word(of byte: UInt8) -> UInt64 {
    switch byte >> 6 {
    case 0: words.0
    case 1: words.1
    case 2: words.2
    default: words.3
    }
  }

  private static func bit(of byte: UInt8) -> UInt64 { 1 << UInt64(byte & 63) }
}
