import Containers
import Posix
import PropertyLists
import StringTables

/// The tables of strings that several layers have by the same name, merged key by key (`-o strings=merge`).
///
/// A merged table is a file of its own. Its identity is derived from what it is made of and what it contains, so that a
/// change makes it another file, and a successor finds the same one.
public final class MergedTables: Sendable {
  /// A table or a catalog of a layer, as it was found.
  struct Contributor: Sendable {
    let directory: LayerDirectory
    let name: [UInt8]
    let status: FileStatus
    /// The language that is wanted of a catalog; nil for a table.
    var language: [UInt8]?
  }

  /// A merged table.
  struct Table: Sendable {
    let status: FileStatus
    let content: [UInt8]
    /// The layers whose tables are in it, the topmost first.
    let layers: [Int]
    /// Whether a layer's table has further names, by which it can change without an event.
    let isVolatile: Bool
  }

  /// What a set of contributors makes.
  private struct Result {
    /// nil where the topmost file is shown as it is.
    let table: Table?
    let failures: [TableFailure]
    /// Whether a change that follows shows in the attributes that lead here.
    let isSettled: Bool
  }

  /// Larger tables are not merged, in bytes.
  static let largest = 16 << 20
  private static let largestCache = 64 << 20
  /// Catalogs whose files have no more bytes than this together are kept as they were parsed.
  private static let largestCatalogs = 4 << 20
  private static let mostTables = 4096

  private struct State {
    /// By the hash of what the contributors are.
    var results = LRUCache<UInt64, Result>(countLimit: mostTables, costLimit: largestCache)
    var tables = LRUCache<FileIdentity, Table>(countLimit: mostTables, costLimit: largestCache)
    var failures = LRUCache<TableFailure.Key, TableFailure>(countLimit: TableFailure.most)
    /// By the hash of what they are: each contributes to a table in each language.
    var catalogs = LRUCache<UInt64, ParsedTable<StringCatalog>>(countLimit: 64, costLimit: largestCatalogs)
  }

  private let state = Locked(State())

  private let variant: TextVariant

  /// - Parameter variant: chooses among the texts that catalogs have for devices and widths.
  public init(for variant: TextVariant = TextVariant()) { self.variant = variant }

  /// What tables are merged into; a single one is converted if it is in UTF-16, so that all tables are in UTF-8.
  /// - Parameter contributors: the topmost first; at least one.
  /// - Returns: nil where the topmost one is shown as it is.
  /// - Throws: errors of its layers; ESTALE if one of them changes again and again.
  func table(of contributors: [Contributor]) throws(Errno) -> Table? {
    let key = Self.key(of: contributors)
    let known = state.withLock { $0.results.value(for: key) }
    if let known, known.isSettled {
      if let table = known.table { keep(table) }
      return known.table
    }
    let result = try merge(contributors)
    state.withLock { state in
      state.results.insert(result, for: key, cost: result.table?.content.count ?? 0)
      for contributor in contributors { _ = state.failures.remove(TableFailure.Key(contributor)) }
      for failure in result.failures { state.failures.insert(failure, for: failure.key) }
    }
    if let table = result.table { keep(table) }
    return result.table
  }

  private func keep(_ table: Table) {
    state.withLock { $0.tables.insert(table, for: table.status.identity, cost: table.content.count) }
  }

  /// A table that was found just now; nil if it is not kept any more.
  func table(_ identity: FileIdentity) -> Table? { state.withLock { $0.tables.value(for: identity) } }

  /// The layers whose tables a merged one contains, the topmost first; empty if that is not known any more.
  public func layers(of identity: FileIdentity) -> [Int] { table(identity)?.layers ?? [] }

  /// Whether what is merged can change without an event.
  public func isVolatile(_ identity: FileIdentity) -> Bool { table(identity)?.isVolatile ?? true }

  /// The tables that could not be merged, as far as they are still the same.
  public var failures: [TableFailure] {
    let all = state.withLock { state -> [TableFailure] in
      var found: [TableFailure] = []
      while let failure = state.failures.removeOldest() { found.append(failure) }
      for failure in found { state.failures.insert(failure, for: failure.key) }
      return found
    }
    return all.filter(\.isPresent)
  }

  // MARK: - Merging

  private func merge(_ contributors: [Contributor]) throws(Errno) -> Result {
    let top = contributors.first { $0.language == nil } ?? contributors[0]
    let isShownAsIs =
      if top.language == nil, try top.isStaged() { true } else {
        contributors.count == 1 ? try !contributors[0].hasWideCharacters() : false
      }
    if isShownAsIs { return Result(table: nil, failures: [], isSettled: top.isSettled) }
    let merged = try parse(contributors, below: top)
    // The file rule: the topmost one is served as it is.
    if merged.lacksTop { return Result(table: nil, failures: merged.failures, isSettled: top.isSettled) }
    let isSettled = contributors.allSatisfy(\.isSettled)
    guard merged.used.count > 1 || merged.isConverted else {
      return Result(table: nil, failures: merged.failures, isSettled: isSettled)
    }
    let content = StringTable.merge(merged.tables).written()
    let isVolatile = contributors.contains { $0.status.links > 1 }
    return Result(
      table: Self.table(content, merged.used, top, isVolatile: isVolatile), failures: merged.failures,
      isSettled: isSettled)
  }

  /// What contributors have, down to the first that is complete.
  struct ParsedContributors {
    var tables: [StringTable] = []
    var used: [Contributor] = []
    var failures: [TableFailure] = []
    /// Whether the topmost one is in UTF-16 or UTF-32.
    var isConverted = false
    /// Whether the topmost one is no table, or must not be merged.
    var lacksTop = false
  }

  /// - Parameter top: the topmost table, whose readers may read the result.
  func parse(_ contributors: [Contributor], below top: Contributor) throws(Errno) -> ParsedContributors {
    var all = ParsedContributors()
    for contributor in contributors {
      let isTop = contributor.isSame(as: top)
      let parsed = try parse(contributor, below: isTop ? nil : top)
      if let reason = parsed.reason {
        all.failures.append(TableFailure(contributor, reason))
        if !isTop { continue }
        all.lacksTop = true
        return all
      }
      if isTop { all.isConverted = parsed.isWide }
      // Most catalogs lack some language.
      if contributor.language != nil, parsed.table.entries.isEmpty { continue }
      all.tables.append(parsed.table)
      all.used.append(contributor)
      if parsed.isComplete { break }
    }
    return all
  }

  private static func table(
    _ content: [UInt8], _ used: [Contributor], _ top: Contributor, isVolatile: Bool
  ) -> Table {
    var status = top.status
    for contributor in used {
      status.modified = max(status.modified, contributor.status.modified)
      status.changed = max(status.changed, contributor.status.changed)
    }
    (status.links, status.size) = (1, UInt64(content.count))
    status.blocks = UInt64((content.count + 511) / 512)
    var hash = StableHash(seed: key(of: used))
    hash.combine(content)
    status.identity = FileIdentity(table: hash.value)
    // A layer's table and catalog follow one another.
    var layers: [Int] = []
    for layer in used.map(\.directory.layer) where layers.last != layer { layers.append(layer) }
    return Table(status: status, content: content, layers: layers, isVolatile: isVolatile)
  }

  private static func key(of contributors: [Contributor]) -> UInt64 {
    var hash = StableHash(seed: 0)
    for contributor in contributors {
      let status = contributor.status
      // One file may contribute in several languages.
      if let language = contributor.language { hash.combine(language) }
      hash.combine(status.identity.device)
      hash.combine(status.identity.inode)
      for word in [status.mode, status.owner, status.group, status.links] { hash.combine(UInt64(word)) }
      hash.combine(status.size)
      for time in [status.modified, status.changed] {
        hash.combine(UInt64(bitPattern: Int64(time.seconds)))
        hash.combine(UInt64(truncatingIfNeeded: time.nanoseconds))
      }
    }
    return hash.value
  }
}

extension MergedTables {
  fileprivate struct Parsed {
    var table = StringTable()
    /// Why it is no table, or must not be merged; nil otherwise.
    var reason: String?
    /// Whether it is in UTF-16 or UTF-32.
    var isWide = false
    /// Whether it ends the merging.
    var isComplete = false
  }

  /// - Parameter top: the topmost table; nil for itself.
  /// - Throws: what opening and reading it answers; ESTALE if it is another file by now.
  private func parse(_ contributor: Contributor, below top: Contributor?) throws(Errno) -> Parsed {
    guard contributor.status.size <= Self.largest else {
      return Parsed(reason: "larger than \(Self.largest >> 20) MiB")
    }
    if let top, !contributor.isReadable(forReadersOf: top) {
      return Parsed(reason: "not readable by all who may read the topmost table")
    }
    guard let language = contributor.language else { return try contributor.parse() }
    if try contributor.hasAccessList() { return Parsed(reason: "has an ACL") }
    let catalog = try catalog(of: contributor)
    return Parsed(table: catalog.table.table(ofLanguage: language), reason: catalog.error?.description)
  }

  private func catalog(of contributor: Contributor) throws(Errno) -> ParsedTable<StringCatalog> {
    let key = Self.key(of: [contributor.withoutLanguage])
    if let known = state.withLock({ $0.catalogs.value(for: key) }) { return known }
    let parsed = StringCatalog.parse(try contributor.readForPresentReaders(), for: variant)
    if contributor.isSettled {
      state.withLock { $0.catalogs.insert(parsed, for: key, cost: Int(contributor.status.size)) }
    }
    return parsed
  }
}

extension MergedTables.Contributor {
  /// A change within a tick of the file system's clock leaves the times as they are.
  fileprivate var isSettled: Bool { status.changed.seconds < TimeSpec.now.seconds - 1 }

  fileprivate var withoutLanguage: Self { Self(directory: directory, name: name, status: status) }

  /// Whether both are the table of one layer.
  func isSame(as other: Self) -> Bool {
    language == nil && other.language == nil && directory === other.directory
  }

  /// - Throws: as `MergedTables.parse`.
  fileprivate func parse() throws(Errno) -> MergedTables.Parsed {
    let content = try readForPresentReaders()
    if try hasAccessList() { return MergedTables.Parsed(reason: "has an ACL") }
    let parsed = StringTable.parse(content)
    let isMarked = StringTable.isComplete(content)
    var isComplete = isMarked
    if !isMarked { isComplete = try isStaged() }
    return MergedTables.Parsed(
      table: isMarked ? parsed.table.withoutCompletenessComment : parsed.table,
      reason: parsed.error?.description,
      isWide: PropertyListText.hasWideCharacters(Array(content.prefix(4))),
      isComplete: isComplete)
  }

  /// Whether a program is writing it, or was when a process died.
  func isStaged() throws(Errno) -> Bool {
    try withCName(name) { name throws(Errno) in
      try directory.isStagedTable(name, identity: status.identity)
    }
  }

  /// - Throws: as `parse`.
  fileprivate func hasWideCharacters() throws(Errno) -> Bool {
    let file = try withCName(name) { name throws(Errno) in
      try directory.openFile(name, identity: status.identity)
    }
    return try withUnsafeTemporaryBytes(4) { start throws(Errno) in
      let count = try file.read(into: start, at: 0)
      return PropertyListText.hasWideCharacters(Array(start[..<count]))
    }
  }
}

extension FileIdentity {
  /// No file system has it.
  private static let tableDevice = UInt64(UInt32.max)

  /// Of a merged table.
  init(table hash: UInt64) {
    // A birth time, so that nobody takes the number for one that may recur.
    self.init(device: Self.tableDevice, inode: hash, born: TimeSpec(seconds: 1, nanoseconds: 0))
  }

  /// Whether it is that of a merged table, which is in no layer.
  public var isMergedTable: Bool { device == Self.tableDevice }
}

/// FNV-1a, which is the same in every process.
private struct StableHash {
  private(set) var value: UInt64

  init(seed: UInt64) { value = 0xcbf2_9ce4_8422_2325 ^ seed }

  mutating func combine(_ word: UInt64) { withUnsafeBytes(of: word.littleEndian) { combine($0) } }

  mutating func combine(_ bytes: some Sequence<UInt8>) {
    for byte in bytes { value = (value ^ UInt64(byte)) &* 0x100_0000_01b3 }
  }
}
