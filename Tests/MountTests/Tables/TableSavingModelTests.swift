import Glibc
import Posix
import TestSupport
import Testing

/// Random tables in random layers, saved at random through the mount, in the ways of many programs, while layers below change and
/// processes die. The upper layer has what the model leaves of them, and the mount shows what the model merges.
extension MountTests {
  @Suite struct TableSavingModelTests {
    @Test("each saved table is reduced as by the model", .timeLimit(.minutes(10)), arguments: Seeds.chosen(6))
    func saving(seed: UInt64) throws {
      try TableSavingRun(seed: seed, deaths: 0).run()
    }

    @Test(
      "each saved table is reduced as by the model while workers die", .timeLimit(.minutes(10)),
      arguments: Seeds.chosen(3))
    func deaths(seed: UInt64) throws {
      try TableSavingRun(seed: seed, deaths: 30).run()
    }
  }
}

/// A table without comments, as the model has it.
private typealias Keys = [String: String]

struct TableSavingRun {
  private static let names: [ByteString] = ["A.strings", "sub/B.strings"]

  let seed: UInt64
  /// The chance that the worker is killed while a table is saved, in percent.
  let deaths: Int

  func run() throws {
    var random = SplitMix64(seed: seed)
    let folder = try TemporaryFolder()
    let layers = try (0..<3).map { try folder.folder(ByteString("layer\($0)")) }
    for layer in layers { try (layer / "sub").makeDirectory() }
    for layer in layers {
      for name in Self.names where random.percent(60) { try change(layer / name, &random) }
    }
    var setup = MountSetup(
      main: layers[2], point: try folder.folder("mount"), substitutions: Array(layers[..<2]))
    setup.options = ["writable", "strings=merge"]
    try withMount(setup) { mount in
      for step in 0..<TestLength.steps(full: 150, brief: 40) {
        let name = random.pick(Self.names)
        let text: String
        do { text = try self.step(name, layers, mount, &random) } catch {
          throw TestFailure("seed \(seed), step \(step): \(error)")
        }
        if !text.isEmpty {
          Issue.record("seed \(seed) (BUNDLEFS_SEED=\(seed)), step \(step): \(text)")
          return
        }
      }
    }
  }

  /// - Returns: what differs from the model; empty for nothing.
  private func step(
    _ name: ByteString, _ layers: [ByteString], _ mount: Mount, _ random: inout SplitMix64
  ) throws -> String {
    if random.percent(25) {
      try change(random.pick(Array(layers.dropFirst())) / name, &random)
      try mount.barrier()
    }
    let below = Array(layers.dropFirst()).map { $0 / name }
    let (base, own) = (
      Self.keys(try? (mount.point / name).readText()), Self.keys(try? (layers[0] / name).readText())
    )
    let wasMerged =
      (try? (layers[0] / name).readText()).map { Self.keys($0) != nil && !Self.isMarked($0) } ?? true
    let saved = Self.text(base ?? [:], &random)
    let pattern = random.pick(MountTests.TableSavingTests.Pattern.allCases)
    // Only a program that has it open shows what it has changed if a layer below changes meanwhile.
    let isChangedBelow = random.percent(15) && (mount.point / name).exists
    if isChangedBelow {
      try saveInPlace(saved, to: mount.point / name) { try change(below[0], &random) }
    } else {
      try save(saved, to: mount.point / name, pattern, mount, &random)
    }
    try settle(layers[0], mount)
    let merged = below.reversed().reduce(into: Keys()) {
      $0.merge(Self.keys(try? $1.readText()) ?? [:]) { $1 }
    }
    let isBelow = below.contains { Self.keys(try? $0.readText()) != nil }
    let history = isChangedBelow && wasMerged ? base : nil
    let expected = Self.reduced(saved, below: isBelow ? merged : nil, base: history, own: own ?? [:])
    let upper = try (layers[0] / name).readText()
    let shown = try (mount.point / name).readText()
    let words =
      "\(name) by \(isChangedBelow ? "place, changed below" : pattern.rawValue): \(saved.debugDescription)"
    switch expected {
    case .whole(let text):
      if upper != text || shown != text {
        return "\(words): expected \(text.debugDescription), is \(upper.debugDescription)"
      }
    case .keys(let keys):
      if Self.keys(upper) != keys || Self.isMarked(upper) {
        return "\(words): expected \(keys), is \(upper.debugDescription)"
      }
      let view = merged.merging(keys) { $1 }
      if Self.keys(shown) != view {
        return "\(words): expected to show \(view), shows \(shown.debugDescription)"
      }
    }
    return ""
  }

  private func save(
    _ text: String, to table: ByteString, _ pattern: MountTests.TableSavingTests.Pattern, _ mount: Mount,
    _ random: inout SplitMix64
  ) throws {
    let kills = random.percent(deaths)
    let needsTable: Set<MountTests.TableSavingTests.Pattern> = [
      .pieces, .backup, .unlink, .link, .exchange, .place, .mapping,
    ]
    let isPossible = table.exists && !text.isEmpty
    let pattern = needsTable.contains(pattern) && !isPossible ? .truncate : pattern
    if kills, random.percent(50) { kill(mount.worker, SIGKILL) }
    try pattern.save(text, to: table)
    if kills { kill(mount.worker, SIGKILL) }
  }

  private func saveInPlace(_ text: String, to table: ByteString, _ change: () throws -> Void) throws {
    try table.withFile(O_RDWR) { file in
      let former = try ByteString.text(of: file)
      try change()
      #expect(ftruncate(file, 0) == 0)
      try ByteString.put(text, in: file, at: 0)
      _ = former
    }
  }

  private func settle(_ upper: ByteString, _ mount: Mount) throws {
    if !eventually(within: 30, { TableSaving.pending(in: upper).isEmpty }) {
      throw TestFailure("not reduced")
    }
    try mount.barrier()
  }

  // MARK: - The model

  private enum Reduced {
    case whole(String)
    case keys(Keys)
  }

  private static func reduced(_ saved: String, below: Keys?, base: Keys?, own: Keys) -> Reduced {
    guard let keys = keys(saved), let below, !isMarked(saved) else { return .whole(saved) }
    let isRemoved = below.keys.contains { keys[$0] == nil && (base == nil || base?[$0] != nil) }
    if isRemoved { return .whole(TableSaving.mark + saved) }
    return .keys(
      keys.filter { key, value in
        value != below[key] && !(base != nil && own[key] == nil && base?[key] == value)
      })
  }

  private static func isMarked(_ text: String) -> Bool { text.hasPrefix(TableSaving.mark) }

  /// nil if it is malformed, or if there is none.
  private static func keys(_ text: String?) -> Keys? {
    guard let text else { return nil }
    var keys: Keys = [:]
    for line in text.split(separator: "\n") where !line.hasPrefix("/*") {
      let parts = line.split(separator: "\"", omittingEmptySubsequences: false)
      guard parts.count == 5 else { return nil }
      keys[String(parts[1])] = String(parts[3])
    }
    return keys
  }

  // MARK: - Texts

  private func change(_ path: ByteString, _ random: inout SplitMix64) throws {
    if random.percent(10) {
      if path.exists { try path.remove() }
      return
    }
    // A file that is edited in place is one file for both programs.
    try path.replace(random.percent(8) ? "\"x\" = ;\n" : Self.text([:], &random))
  }

  /// A few changes of a table.
  private static func text(_ keys: Keys, _ random: inout SplitMix64) -> String {
    if random.percent(6) { return "\"x\" = \"1\"\n\"y\" = 2;\n" }
    var keys = keys
    for _ in 0..<random.number(0...3) {
      keys["k\(random.number(0...6))"] = "v\(random.number(0...9))"
    }
    if random.percent(15), let gone = keys.keys.sorted().first { keys[gone] = nil }
    let lines = keys.sorted { $0.key < $1.key }.map { "\"\($0.key)\" = \"\($0.value)\";\n" }
    return lines.joined()
  }
}
