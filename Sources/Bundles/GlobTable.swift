/// Types by the patterns of shared-mime-info's `globs2`, a line each: `WEIGHT:TYPE:PATTERN[:FLAGS]`.
///
/// A pattern without wildcards is matched first. Of the others that match, the one with the greatest weight
/// counts; of those, the longest; of those, the one that minds case; of those, the first. Nearly all of them
/// are suffixes (`*.png`) and found by hash; only the few others are tried one after the other.
struct GlobTable: Sendable {
  fileprivate struct Match: Sendable {
    let weight: Int
    let length: Int
    let mindsCase: Bool
    let type: String

    func isBetter(than other: Match) -> Bool {
      if weight != other.weight { return weight > other.weight }
      if length != other.length { return length > other.length }
      return mindsCase && !other.mindsCase
    }
  }

  /// Patterns that are matched alike, by what they are matched with.
  fileprivate struct Group: Sendable {
    var literals: [[UInt8]: Match] = [:]
    var suffixes: [[UInt8]: Match] = [:]
    var patterns: [(Glob, Match)] = []
  }

  private var exact = Group()
  private var anyCase = Group()
  /// The bytes that any suffix begins with, and the length of the longest.
  private var suffixStarts = Set<UInt8>()
  private var longestSuffix = 0

  /// - Parameter files: the files' contents. An earlier file's pattern wins against the same one of a later;
  ///   after a line that has `__NOGLOBS__` for the pattern, the later files' patterns of that type are none.
  init(files: [[UInt8]]) {
    var closed: Set<String> = []
    for file in files {
      let lines = file.split(separator: UInt8(ascii: "\n")).compactMap { Line($0) }
      for line in lines where !line.endsType && !closed.contains(line.match.type) { add(line) }
      for line in lines where line.endsType { closed.insert(line.match.type) }
    }
  }

  /// The type of a name; nil if no pattern matches.
  func type(for name: [UInt8]) -> String? {
    let lower = lowercased(name)
    if let literal = exact.literals[name] ?? anyCase.literals[lower] { return literal.type }
    var best: Match?
    for length in suffixLengths(of: name) {
      consider(exact.suffixes[Array(name.suffix(length))], &best)
      consider(anyCase.suffixes[Array(lower.suffix(length))], &best)
    }
    for (glob, match) in exact.patterns where glob.matches(name) { consider(match, &best) }
    for (glob, match) in anyCase.patterns where glob.matches(lower) { consider(match, &best) }
    return best?.type
  }

  /// The lengths of the ends of a name that may be suffixes, longest first.
  private func suffixLengths(of name: [UInt8]) -> [Int] {
    name.indices.suffix(longestSuffix).filter { suffixStarts.contains(name[$0]) }.map { name.count - $0 }
  }

  private func consider(_ match: Match?, _ best: inout Match?) {
    guard let match else { return }
    if let present = best, !match.isBetter(than: present) { return }
    best = match
  }

  private mutating func add(_ line: Line) {
    let isExact = line.match.mindsCase
    let pattern = isExact ? line.pattern : lowercased(line.pattern)
    if let suffix = Glob.suffix(in: pattern) {
      longestSuffix = max(longestSuffix, suffix.count)
      // Both cases of a letter, since names are looked at as they are.
      for byte in suffix.prefix(1) { suffixStarts.formUnion(Self.cases(of: byte)) }
    }
    if isExact { exact.add(pattern, line.match) } else { anyCase.add(pattern, line.match) }
  }

  private static func cases(of byte: UInt8) -> [UInt8] {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) ? [byte, byte & ~0x20] : [byte]
  }
}

extension GlobTable.Group {
  mutating func add(_ pattern: [UInt8], _ match: GlobTable.Match) {
    if let suffix = Glob.suffix(in: pattern) {
      Self.add(match, suffix, to: &suffixes)
    } else if Glob.isLiteral(pattern) {
      Self.add(match, pattern, to: &literals)
    } else if let glob = Glob(pattern) {
      patterns.append((glob, match))
    }
  }

  private static func add(
    _ match: GlobTable.Match, _ key: [UInt8], to table: inout [[UInt8]: GlobTable.Match]
  ) {
    if let present = table[key], !match.isBetter(than: present) { return }
    table[key] = match
  }
}

/// A line of the file.
private struct Line {
  let pattern: [UInt8]
  let match: GlobTable.Match

  /// Whether it takes the type's patterns in later files away.
  var endsType: Bool { pattern.elementsEqual("__NOGLOBS__".utf8) }

  /// - Returns: nil for a comment and a damaged line.
  init?(_ line: ArraySlice<UInt8>) {
    let colon = UInt8(ascii: ":")
    let parts = line.split(separator: colon, maxSplits: 3, omittingEmptySubsequences: false)
    guard line.first != UInt8(ascii: "#"), parts.count >= 3, !parts[2].isEmpty else { return nil }
    guard let weight = Int(String(decoding: parts[0], as: UTF8.self)) else { return nil }
    guard parts[1].contains(UInt8(ascii: "/")) else { return nil }
    pattern = Array(parts[2])
    // What follows the flags is for versions to come.
    let flags = parts.count > 3 ? parts[3].prefix { $0 != colon } : []
    let mindsCase = flags.split(separator: UInt8(ascii: ",")).contains { $0.elementsEqual("cs".utf8) }
    match = GlobTable.Match(
      weight: weight, length: pattern.count, mindsCase: mindsCase,
      type: String(decoding: parts[1], as: UTF8.self))
  }
}
