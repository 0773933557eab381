import Posix

/// The names of a directory of the top layer, and of the target's directory of the same path.
struct ApplyListing {
  /// The names of the top layer's entries and whiteouts, sorted.
  let names: [[UInt8]]
  /// The target's entries that the top layer has no entry of.
  let targetOnly: [(name: [UInt8], kind: FileKind)]
  private let entries: [[UInt8]: FileKind]
  /// The names that have a whiteout beside their entry, folded where case does not count.
  private let whiteouts: Set<[UInt8]>
  /// By what the spellings of a name have in common; empty where case counts.
  private let targetSpellings: [[UInt8]: [[UInt8]]]
  private let spellings: [[UInt8]: Int]
  private let foldsNames: Bool

  init(_ source: LayerDirectory, _ target: LayerDirectory?) throws(Errno) {
    let own = try SingleLayerDirectory(source, cutoff: nil)
    foldsNames = source.foldsNames
    entries = own.entries
    // The markers of opaque directories, and the work folder, are no whiteouts.
    let hidden = own.whiteouts.filter { !WhiteoutMarker.isMarker($0) && !$0.isEmpty }
    whiteouts = foldsNames ? Set(hidden.map(NameFolding.key)) : hidden
    names = Set(entries.keys).union(hidden).sorted { $0.lexicographicallyPrecedes($1) }
    let others =
      try target.map { target throws(Errno) in try SingleLayerDirectory(target, cutoff: nil).entries } ?? [:]
    guard foldsNames else {
      (spellings, targetSpellings) = ([:], [:])
      targetOnly = others.filter { own.entries[$0.key] == nil }.map { ($0.key, $0.value) }.sortedByName
      return
    }
    spellings = names.reduce(into: [:]) { $0[NameFolding.key(of: $1), default: 0] += 1 }
    targetSpellings = Dictionary(grouping: others.keys, by: NameFolding.key)
    let keys = Set(entries.keys.map(NameFolding.key))
    targetOnly =
      others.filter { !keys.contains(NameFolding.key(of: $0.key)) }.map { ($0.key, $0.value) }.sortedByName
  }

  /// The top layer's name that a name finds; nil if it has neither an entry nor a whiteout.
  func name(_ name: [UInt8]) -> [UInt8]? {
    if entries[name] != nil { return name }
    if foldsNames {
      let key = NameFolding.key(of: name)
      return names.first { NameFolding.key(of: $0) == key && entries[$0] != nil }
        ?? names.first { NameFolding.key(of: $0) == key }
    }
    return whiteouts.contains(name) ? name : nil
  }

  func kind(_ name: [UInt8]) -> FileKind { entries[name] ?? .regular }

  func isDirectory(_ name: [UInt8]) -> Bool { entries[name] == .directory }

  /// Whether the top layer has a whiteout of the name beside its entry.
  func isMarked(_ name: [UInt8]) -> Bool { whiteouts.contains(foldsNames ? NameFolding.key(of: name) : name) }

  /// The name that an entry has in the target, or gets there.
  func targetName(_ name: [UInt8]) -> [UInt8] {
    if !foldsNames { return name }
    return targetSpellings[NameFolding.key(of: name)]?.first ?? name
  }

  /// Whether one of the two directories has the name in several spellings.
  func isAmbiguous(_ name: [UInt8]) -> Bool {
    if !foldsNames { return false }
    let key = NameFolding.key(of: name)
    return spellings[key, default: 0] > 1 || (targetSpellings[key]?.count ?? 0) > 1
  }
}

extension [(name: [UInt8], kind: FileKind)] {
  fileprivate var sortedByName: Self { sorted { $0.name.lexicographicallyPrecedes($1.name) } }
}
