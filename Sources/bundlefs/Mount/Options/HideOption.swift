import Layers

/// `-o hide=GLOB[:GLOB…]`.
extension MountOption {
  /// The patterns, each of which can be used.
  func patterns() throws(Failure) -> [[UInt8]] {
    let parts = value.map { Self.split($0, at: UInt8(ascii: ":")) } ?? [[]]
    var patterns: [[UInt8]] = []
    for part in parts {
      let pattern = Self.unescapedPattern(part)
      do throws(HiddenNames.Fault) {
        // With `case=insensitive`, a pattern can be longer.
        for folds in [false, true] { _ = try HiddenNames([pattern], foldsNames: folds) }
      } catch {
        throw .usage("invalid option '\(text)': \(error.remedy(pattern.shown))")
      }
      patterns.append(pattern)
    }
    return patterns
  }

  /// Adds the backslashes that `unescapedPattern` removes.
  static func escapedPattern(_ pattern: [UInt8]) -> [UInt8] {
    pattern.flatMap { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: ":") ? [UInt8(ascii: "\\"), $0] : [$0] }
  }

  /// Removes the backslashes before `,` and `:`; the others belong to the pattern.
  fileprivate static func unescapedPattern(_ bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var rest = bytes[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\"), let next = rest.popFirst() else {
        result.append(byte)
        continue
      }
      let isSeparator = next == UInt8(ascii: ",") || next == UInt8(ascii: ":")
      result += isSeparator ? [next] : [byte, next]
    }
    return result
  }
}

extension MountOptions {
  /// The names that the view hides; nil for none.
  var hidden: HiddenNames? {
    if hiddenPatterns.isEmpty { return nil }
    return try? HiddenNames(hiddenPatterns, foldsNames: foldsNames)
  }

  /// The names that a mount hides, by what its status says of the option.
  static func hidden(shown list: String, _ foldsNames: Bool) -> HiddenNames? {
    if list.isEmpty { return nil }
    let patterns = MountOption.split(Array(list.utf8), at: UInt8(ascii: ":")).map(
      MountOption.unescapedPattern)
    return try? HiddenNames(patterns, foldsNames: foldsNames)
  }
}

extension HiddenNames.Fault {
  fileprivate func remedy(_ pattern: String) -> String {
    switch self {
    case .empty: "expected hide=GLOB[:GLOB...], such as hide=*.bak:Data/*.psd"
    case .malformed:
      "'\(pattern)' has a '[' without ']' or ends with a backslash; write '\\[' for a bracket of a name"
    case .emptyComponent: "'\(pattern)' ends with a slash, or has two in a row; leave it out"
    case .dotComponent: "'\(pattern)' contains '.' or '..'; write the path from the mount's root"
    case .wholeTree: "nothing follows '**' in '\(pattern)'; name the folder without it to hide all of it"
    }
  }
}
