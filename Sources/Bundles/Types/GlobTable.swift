import Layers

/// The MIME types in shared-mime-info's `globs2` files, whose lines are `WEIGHT:TYPE:PATTERN[:FLAGS]`.
///
/// Literal patterns have priority. Other patterns are ranked by weight, then length, then case sensitivity, then
/// order. Most patterns are suffixes (`*.png`) and are found by hash; the others are matched in sequence.
struct GlobTable: Sendable {
  fileprivate struct Match: Sendable {
    let weight: Int
    let length: Int
    let isCaseSensitive: Bool
    let type: String

    func isBetter(than other: Match) -> Bool {
      if weight != other.weight { return weight > other.weight }
      if length != other.length { return length > other.length }
      return isCaseSensitive && !other.isCaseSensitive
    }
  }

  fileprivate struct Patterns: Sendable {
    var literals: [[UInt8]: Match] = [:]
    var suffixes: [[UInt8]: Match] = [:]
    var globs: [(Glob, Match)] = []
  }

  private var caseSensitive = Patterns()
  private var caseInsensitive = Patterns()
  /// The first bytes of all suffixes.
  private var suffixStarts = Set<UInt8>()
  private var maxSuffixLength = 0

  /// - Parameter files: The contents of the files. Earlier files have priority. A `__NOGLOBS__` pattern discards a
  ///   type's patterns in later files.
  init(files: [[UInt8]]) {
    var discarded: Set<String> = []
    for file in files {
      let lines = file.split(separator: UInt8(ascii: "\n")).compactMap { Line($0) }
      for line in lines where !line.discardsLaterFiles && !discarded.contains(line.match.type) { add(line) }
      for line in lines where line.discardsLaterFiles { discarded.insert(line.match.type) }
    }
  }

  func type(for name: [UInt8]) -> String? {
    let lower = lowercased(name)
    if let literal = caseSensitive.literals[name] ?? caseInsensitive.literals[lower] { return literal.type }
    var best: Match?
    for length in suffixLengths(of: name) {
      consider(caseSensitive.suffixes[Array(name.suffix(length))], &best)
      consider(caseInsensitive.suffixes[Array(lower.suffix(length))], &best)
    }
    for (glob, match) in caseSensitive.globs where glob.matches(name) { consider(match, &best) }
    for (glob, match) in caseInsensitive.globs where glob.matches(lower) { consider(match, &best) }
    return best?.type
  }

  /// The lengths of the name's possible suffixes, longest first.
  private func suffixLengths(of name: [UInt8]) -> [Int] {
    name.indices.suffix(maxSuffixLength).filter { suffixStarts.contains(name[$0]) }.map { name.count - $0 }
  }

  private func consider(_ match: Match?, _ best: inout Match?) {
    guard let match else { return }
    if let present = best, !match.isBetter(than: present) { return }
    best = match
  }

  private mutating func add(_ line: Line) {
    let isCaseSensitive = line.match.isCaseSensitive
    let pattern = isCaseSensitive ? line.pattern : lowercased(line.pattern)
    if let suffix = Glob.suffix(in: pattern) {
      maxSuffixLength = max(maxSuffixLength, suffix.count)
      // Both cases, because names are not lowercased before this test.
      for byte in suffix.prefix(1) { suffixStarts.formUnion(Self.cases(of: byte)) }
    }
    if isCaseSensitive {
      caseSensitive.add(pattern, line.match)
    } else {
      caseInsensitive.add(pattern, line.match)
    }
  }

  private static func cases(of byte: UInt8) -> [UInt8] {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) ? [byte, byte & ~0x20] : [byte]
  }
}

extension GlobTable.Patterns {
  mutating func add(_ pattern: [UInt8], _ match: GlobTable.Match) {
    if let suffix = Glob.suffix(in: pattern) {
      Self.add(match, suffix, to: &suffixes)
    } else if Glob.isLiteral(pattern) {
      Self.add(match, pattern, to: &literals)
    } else if let glob = Glob(pattern) {
      globs.append((glob, match))
    }
  }

  private static func add(
    _ match: GlobTable.Match, _ key: [UInt8], to table: inout [[UInt8]: GlobTable.Match]
  ) {
    if let present = table[key], !match.isBetter(than: present) { return }
    table[key] = match
  }
}

/// A line of a `globs2` file.
private struct Line {
  let pattern: [UInt8]
  let match: GlobTable.Match

  /// Whether later files' patterns of the type are discarded.
  var discardsLaterFiles: Bool { pattern.elementsEqual("__NOGLOBS__".utf8) }

  /// nil for comments and malformed lines.
  init?(_ line: ArraySlice<UInt8>) {
    let colon = UInt8(ascii: ":")
    let parts = line.split(separator: colon, maxSplits: 3, omittingEmptySubsequences: false)
    guard line.first != UInt8(ascii: "#"), parts.count >= 3, !parts[2].isEmpty else { return nil }
    guard let weight = Int(String(decoding: parts[0], as: UTF8.self)) else { return nil }
    guard parts[1].contains(UInt8(ascii: "/")) else { return nil }
    pattern = Array(parts[2])
    // Fields after the flags are reserved.
    let flags = parts.count > 3 ? parts[3].prefix { $0 != colon } : []
    let isCaseSensitive = flags.split(separator: UInt8(ascii: ",")).contains { $0.elementsEqual("cs".utf8) }
    match = GlobTable.Match(
      weight: weight, length: pattern.count, isCaseSensitive: isCaseSensitive,
      type: String(decoding: parts[1], as: UTF8.self))
  }
}
