import Posix

/// A name and what each layer has under it.
public struct ComparedName: Sendable, Equatable {
  /// The state of the name compared with MAIN, the bottom layer.
  public enum Status: UInt8, Sendable, CaseIterable {
    /// MAIN's entry is visible, or a directory that MAIN has too.
    case unchanged = 0x3D  // =
    /// Another layer's entry is visible and hides MAIN's.
    case overridden = 0x3E  // >
    /// Another layer's entry is visible; MAIN has none.
    case added = 0x2B  // +
    /// A whiteout or an opaque directory hides the name.
    case hidden = 0x2D  // -
    /// Where case does not count: another entry of the same layer's directory has the name, too, and comes first.
    case collision = 0x7E  // ~
    /// Tables of strings of several layers are visible as one.
    case merged = 0x26  // &
    /// The option `hide` hides the name in all layers.
    case excluded = 0x23  // #
  }

  public let name: [UInt8]
  /// The kind of the visible entry, or of the topmost hidden one.
  public let kind: FileKind
  public let status: Status
  /// The layer of the visible entry, or the one that hides the name; then, top down, the other layers that
  /// have the name. Of a merged table, the layers that it comes from.
  public let layers: [Int]
  /// Of a merged table, the keys in which its layers differ.
  public var keys = ComparedKeys()
}

extension LayerStack {
  /// Compares a merged directory, at its path from the root, with what each layer contains.
  /// - Returns: all names but those with whiteouts only, sorted.
  /// - Throws: what reading a part of the merged directory throws.
  public func comparison(of merged: MergedDirectory, at path: [[UInt8]]) throws(Errno) -> [ComparedName] {
    let own = try singleLayerDirectories(at: path, of: merged)
    let shown =
      foldsNames
      ? try foldedComparison(of: merged, own)
      : compared(own).sorted { $0.name.lexicographicallyPrecedes($1.name) }
    var names = shown
    let excluded = excluded(own)
    if !excluded.isEmpty {
      names = (shown + excluded).sorted { $0.name.lexicographicallyPrecedes($1.name) }
    }
    guard let tables else { return names }
    return try names.map { name throws(Errno) in try merged.comparedTable(name, tables) ?? name }
  }

  /// The names that the option `hide` hides, as far as layers take part in the directory.
  private func excluded(_ own: [SingleLayerDirectory]) -> [ComparedName] {
    var found: [[UInt8]: (kind: FileKind, layers: [Int])] = [:]
    for directory in own where directory.cutoff == nil {
      for (name, kind) in directory.excluded {
        found[name, default: (kind, [])].layers.append(directory.layer)
      }
    }
    return found.map {
      ComparedName(name: $0.key, kind: $0.value.kind, status: .excluded, layers: $0.value.layers)
    }
  }

  /// Compares by what the spellings of names have in common.
  private func foldedComparison(
    of merged: MergedDirectory, _ own: [SingleLayerDirectory]
  ) throws(Errno) -> [ComparedName] {
    var found: [ComparedName] = []
    for name in compared(own.map(\.folded)) {
      let lowest = own.lazy.reversed().compactMap { $0.spelling(ofKey: name.name) }.first
      let shown = name.status == .hidden ? nil : try merged.shownSpelling(of: name.name)
      found.append(name.respelled(shown ?? lowest ?? name.name))
    }
    for directory in own where directory.cutoff == nil { found += directory.collisions }
    return found.sorted { $0.name.lexicographicallyPrecedes($1.name) }
  }

  private func compared(_ own: [SingleLayerDirectory]) -> [ComparedName] {
    var names: Set<[UInt8]> = []
    for directory in own { names.formUnion(directory.entries.keys) }
    return names.map { compared($0, own) }
  }

  /// - Parameter own: the directories of all layers that have one; at least one has the name.
  private func compared(_ name: [UInt8], _ own: [SingleLayerDirectory]) -> ComparedName {
    var marker: Int?
    var having: [(layer: Int, kind: FileKind)] = []
    var shown: Int?
    for directory in own {
      if let kind = directory.entries[name] {
        if having.isEmpty {
          // A whiteout above wins; otherwise the cutoff hides the whole directory.
          marker = marker ?? directory.cutoff
          shown = marker == nil ? directory.layer : nil
        }
        having.append((directory.layer, kind))
      }
      if having.isEmpty, marker == nil, directory.cutoff == nil, directory.whiteouts.contains(name) {
        marker = directory.layer
      }
    }
    let kind = having.first?.kind ?? .regular
    guard let shown else {
      return ComparedName(
        name: name, kind: kind, status: .hidden, layers: (marker.map { [$0] } ?? []) + having.map(\.layer))
    }
    return ComparedName(
      name: name, kind: kind, status: status(of: kind, from: shown, having), layers: having.map(\.layer))
  }

  private func status(
    of kind: FileKind, from layer: Int, _ having: [(layer: Int, kind: FileKind)]
  ) -> ComparedName.Status {
    let main = layers.count - 1
    if layer == main { return .unchanged }
    guard let last = having.last, last.layer == main else { return .added }
    return kind == .directory && last.kind == .directory ? .unchanged : .overridden
  }
}

extension ComparedName {
  fileprivate func respelled(_ spelling: [UInt8]) -> ComparedName {
    ComparedName(name: spelling, kind: kind, status: status, layers: layers)
  }
}
