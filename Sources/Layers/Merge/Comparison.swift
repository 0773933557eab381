import Posix

/// A name of a directory, by all that the layers have under it.
public struct ComparedName: Sendable, Equatable {
  /// What has become of it, seen from the layer at the bottom, MAIN.
  public enum Status: UInt8, Sendable, CaseIterable {
    /// MAIN's entry is shown, or a directory that MAIN has, too.
    case unchanged = 0x3D  // =
    /// Another layer's entry is shown in the place of MAIN's.
    case overridden = 0x3E  // >
    /// Another layer's entry is shown, and MAIN has none.
    case added = 0x2B  // +
    /// A mark keeps it from being shown.
    case hidden = 0x2D  // -
  }

  public let name: [UInt8]
  /// What is shown under the name, or what would be first if it were not hidden.
  public let kind: FileKind
  public let status: Status
  /// The layer whose entry is shown, or which hides the name; then, from the top down, those that have the name
  /// below.
  public let layers: [Int]
}

extension LayerStack {
  /// Compares what a merged directory shows with what the layers have in it, marks or no marks.
  /// - Parameters:
  ///   - merged: the directory.
  ///   - path: its names from the root.
  /// - Returns: by name, sorted; what exists as a mark only is left out.
  /// - Throws: what a part of the directory answers that cannot be read.
  public func comparison(
    of merged: MergedDirectory, at path: [[UInt8]]
  ) throws(Errno) -> [ComparedName] {
    let own = try singleLayerDirectories(at: path, of: merged)
    var names: Set<[UInt8]> = []
    for directory in own { names.formUnion(directory.entries.keys) }
    return names.map { compared($0, own) }.sorted { $0.name.lexicographicallyPrecedes($1.name) }
  }

  /// - Parameter own: the directories of all layers that have one; one of them has the name.
  private func compared(_ name: [UInt8], _ own: [SingleLayerDirectory]) -> ComparedName {
    var marker: Int?
    var having: [(layer: Int, kind: FileKind)] = []
    var shown: Int?
    for directory in own {
      if let kind = directory.entries[name] {
        if having.isEmpty {
          // A mark above counts; otherwise what keeps the whole directory from being seen.
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
