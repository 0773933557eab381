import Glibc
import Posix
import TestSupport
import Testing

/// Random tables and string catalogs in random layers, changed at random while they are mounted, read as a simple model merges them.
extension MountTests {
  @Suite struct TableModelTests {
    @Test("each table is as the model merges it", .timeLimit(.minutes(10)), arguments: Seeds.chosen(12))
    func coherence(seed: UInt64) throws { try TableModelRun(seed: seed).run() }

    @Test(
      "each table is as the model merges it while workers die", .timeLimit(.minutes(10)),
      arguments: Seeds.chosen(4))
    func deaths(seed: UInt64) throws { try TableModelRun(seed: seed, hasDeaths: true).run() }
  }
}

struct TableModelRun {
  private static let steps = 150
  private static let folders: [ByteString] = ["", "fr.lproj", "en.lproj"]
  private static let names: [ByteString] = ["A.strings", "B.strings", "A.txt"]
  /// They contribute to the tables in the folders of languages.
  private static let catalogs: [ByteString] = ["A.xcstrings", "B.xcstrings"]

  let seed: UInt64
  var hasDeaths = false

  func run() throws {
    var random = SplitMix64(seed: seed)
    let folder = try TemporaryFolder()
    let layers = try (0..<3).map { try folder.folder(ByteString("layer\($0)")) }
    for layer in layers { for name in Self.folders.dropFirst() { try (layer / name).makeDirectory() } }
    for _ in 0..<20 { _ = try step(layers, &random) }
    var setup = MountSetup(
      main: layers[2], point: try folder.folder("mount"), substitutions: Array(layers[..<2]))
    setup.options = ["strings=merge", random.percent(50) ? "announce=on" : "announce=off"]
    try withMount(setup) { mount in
      var log: [String] = []
      for _ in 0..<Self.steps {
        for _ in 0..<random.number(1...3) { log.append(try step(layers, &random)) }
        if hasDeaths, random.percent(10) {
          kill(mount.worker, SIGKILL)
          log.append("the worker is killed")
        }
        try mount.barrier()
        let differences = try self.differences(layers, mount.point)
        if !differences.isEmpty {
          Issue.record(
            "seed \(seed) (BUNDLEFS_SEED=\(seed)) after step \(log.count): \(differences)\n\(log.suffix(8).joined(separator: "\n"))"
          )
          return
        }
      }
    }
  }

  // MARK: - Changes

  private func step(_ layers: [ByteString], _ random: inout SplitMix64) throws -> String {
    let isCatalog = random.percent(35)
    func place(_ random: inout SplitMix64) -> ByteString {
      let layer = random.pick(layers)
      return isCatalog
        ? layer / random.pick(Self.catalogs) : layer / random.pick(Self.folders) / random.pick(Self.names)
    }
    func text(_ random: inout SplitMix64) -> String {
      isCatalog ? TableModelCatalog.text(&random) : Self.text(&random)
    }
    let path = place(&random)
    let kind = random.number(0...9)
    switch kind {
    case 0..<4: try remakeUnlessRegular(path).write(text(&random))
    case 4, 5:
      let temporary = path.parent / ".new"
      try temporary.write(text(&random))
      try temporary.rename(to: remakeUnlessRegular(path))
    case 6: if path.exists { path.removeTree() }
    case 7:
      path.removeTree()
      try path.makeWhiteout()
    case 8:
      let other = place(&random)
      if path != other, (try? path.status().kind) == .regular {
        other.removeTree()
        try path.rename(to: other)
      }
    default:
      if (try? path.status().kind) == .regular {
        try path.setOwner(random.pick([0, 1000]), group: random.pick([0, 1000]))
        try path.setMode(random.pick([0o600, 0o640, 0o644, 0o644]))
      }
    }
    return "\(kind): \(path)"
  }

  private func remakeUnlessRegular(_ path: ByteString) -> ByteString {
    if (try? path.status().kind) != .regular { path.removeTree() }
    return path
  }

  private static func text(_ random: inout SplitMix64) -> String {
    if random.percent(8) { return "\"k1\" = ;\n" }
    return (0..<random.number(0...4)).map { _ in
      "\"k\(random.number(0...6))\" = \"v\(random.number(0...1000))\";\n"
    }.joined()
  }

  // MARK: - The model

  private func differences(_ layers: [ByteString], _ point: ByteString) throws -> [String] {
    var found: [String] = []
    for folder in Self.folders {
      let seen = Set(try (point / folder).names().filter { Self.names.contains($0) })
      var expected: Set<ByteString> = []
      for name in Self.names {
        let path = folder / name
        let content = try content(path, layers)
        if content != nil { expected.insert(name) }
        let text = try? (point / path).readText()
        if !isSame(content, text, name) {
          found.append("\(path): expected \(content ?? "nothing"), seen \(text ?? "nothing")")
        }
        if let text, try (point / path).status().size != Int64(text.utf8.count) {
          found.append("\(path): size")
        }
      }
      if seen != expected { found.append("\(folder): expected \(expected), seen \(seen)") }
    }
    return found
  }

  private func isSame(_ expected: String?, _ seen: String?, _ name: ByteString) -> Bool {
    guard let expected, let seen else { return expected == nil && seen == nil }
    return expected == seen || (name.text.hasSuffix(".strings") && Self.table(expected) == Self.table(seen))
  }

  /// What the mount shows of a file; nil for nothing.
  private func content(_ path: ByteString, _ layers: [ByteString]) throws -> String? {
    let files = visible(path, layers)
    guard let top = files.first, path.text.hasSuffix(".strings") else {
      return try files.first?.path.readText()
    }
    let text = try top.path.readText()
    if Self.table(text) == nil { return text }
    let status = try top.path.status()
    func readable(_ files: [(layer: Int, path: ByteString)]) throws -> [(layer: Int, text: String)] {
      try files.filter { try Self.isReadable($0.path.status(), forReadersOf: status) }
        .map { ($0.layer, try $0.path.readText()) }
    }
    var tables = try readable(files).map { (layer: $0.layer, table: Self.table($0.text) ?? [:]) }
    if let language = TableModelCatalog.language(of: path) {
      let name = ByteString(String(path.text.split(separator: "/")[1].dropLast(7)) + "xcstrings")
      let catalogs = try readable(visible(name, layers))
      for (layer, text) in catalogs {
        // Behind the layer's own table.
        let place = tables.firstIndex { $0.layer > layer } ?? tables.endIndex
        tables.insert((layer, TableModelCatalog.table(text, language)), at: place)
      }
    }
    var merged: [String: String] = [:]
    for (_, table) in tables.reversed() { merged.merge(table) { $1 } }
    return merged.map { "\"\($0)\" = \"\($1)\";\n" }.joined()
  }

  /// The files of a path down to a whiteout.
  private func visible(_ path: ByteString, _ layers: [ByteString]) -> [(layer: Int, path: ByteString)] {
    let files = layers.enumerated().map { (layer: $0, path: $1 / path) }.filter { $0.path.exists }
    return Array(files.prefix { !$0.path.isWhiteout })
  }

  /// Whether each user, in any groups, who may read one file may read another.
  private static func isReadable(_ file: StatResult, forReadersOf top: StatResult) -> Bool {
    func mayRead(_ file: StatResult, _ user: UInt32, _ groups: [UInt32]) -> Bool {
      if user == file.owner { return file.permissions & 0o400 != 0 }
      return file.permissions & (groups.contains(file.group) ? 0o040 : 0o004) != 0
    }
    // Root may read everything.
    for user in [1000, 1001] as [UInt32] {
      for groups in [[], [0], [1000], [0, 1000]] as [[UInt32]]
      where mayRead(top, user, groups) && !mayRead(file, user, groups) { return false }
    }
    return true
  }

  /// nil if it is malformed. Of a key that comes twice, the last value counts.
  private static func table(_ text: String) -> [String: String]? {
    var table: [String: String] = [:]
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: "\"", omittingEmptySubsequences: false)
      guard parts.count == 5 else { return nil }
      table[String(parts[1])] = String(parts[3])
    }
    return table
  }
}
