import Posix
import TestSupport
import Testing

/// What tests of `bundlefs apply` have in common.
enum Apply {
  /// Runs `bundlefs apply`.
  /// - Parameter asksNot: whether `--yes` is given.
  @discardableResult
  static func run(_ mount: Mount, _ words: ByteString..., asksNot: Bool = true) throws -> Outcome {
    try Command([try Binary.underTest(), "apply", mount.point] + words + (asksNot ? ["--yes"] : [])).run()
  }

  /// All that a tree shows, without link counts, which are those of one layer.
  static func snapshot(_ root: ByteString) throws -> [ByteString: EntrySnapshot] {
    let all = try EntrySnapshot.all(below: root)
    return Dictionary(
      uniqueKeysWithValues: all.map { (ByteString(Array($0.bytes.dropFirst(root.count))), $1) })
  }

  /// How a tree differs from what it was.
  static func differences(
    _ expected: [ByteString: EntrySnapshot], _ seen: [ByteString: EntrySnapshot]
  ) -> [String] {
    Set(expected.keys).union(seen.keys).sorted().flatMap { path -> [String] in
      guard let wanted = expected[path], let found = seen[path] else {
        return ["\(path): \(expected[path] == nil ? "is new" : "is missing")"]
      }
      return found.differences(from: wanted, at: path).filter { !$0.contains(": links: ") }
    }
  }

  /// What a layer has, without the work folder.
  static func names(_ layer: ByteString) throws -> [ByteString] {
    try layer.names().filter { $0 != ".wh..wh.bundlefs-work" }
  }
}
