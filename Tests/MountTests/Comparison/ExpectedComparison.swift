import Posix
import Routing
import TestSupport

/// The expected output of `bundlefs tree --json` for a stack, computed from the plans of its layers.
struct ExpectedComparison {
  private typealias LayerPart = (layer: Int, directory: PlannedDirectory)

  private(set) var entries: [ComparisonEntry] = []
  private let stack: [PlannedLayer]
  private let roots: [ByteString]

  init(_ stack: [PlannedLayer], roots: [ByteString]) {
    (self.stack, self.roots) = (stack, roots)
    let root = MergedDirectory.root(of: stack)
    var hiders: [Int: Int] = [:]
    for layer in root.parts.count..<stack.count { hiders[layer] = root.parts.count - 1 }
    add(root, stack.enumerated().map { ($0.offset, $0.element.root) }, hiders)
  }

  /// - Parameters:
  ///   - layerParts: the directory in each layer that has it, merged or not.
  ///   - hiders: for each layer that is not merged, the layer that hides it.
  private mutating func add(_ merged: MergedDirectory, _ layerParts: [LayerPart], _ hiders: [Int: Int]) {
    let names = Set(layerParts.flatMap { $0.directory.entries.keys }).filter { !$0.hasPrefix(".wh.") }
    for name in names.sorted() {
      let kinds = layerParts.compactMap { part in
        kind(of: name, in: part).map { (layer: part.layer, kind: $0) }
      }
      switch merged.lookup(name) {
      case .file(let layer, let index):
        append(merged, name, stack[layer].files[index].form.kind, layer, kinds)
      case .directory(let directory):
        append(merged, name, .directory, directory.parts[0].layer, kinds)
        add(directory, parts(name, in: layerParts), self.hiders(name, from: merged, to: directory, hiders))
      case nil:
        guard let first = kinds.first else { continue }
        let whiteout = merged.parts.first { part in
          part.layer < first.layer && hides(name, (part.layer, part.directory))
        }
        let hider = whiteout?.layer ?? hiders[first.layer] ?? -1
        append(merged, name, first.kind, "hidden", [hider] + kinds.map(\.layer))
      }
    }
  }

  private func parts(_ name: ByteString, in layerParts: [LayerPart]) -> [LayerPart] {
    layerParts.compactMap { part in
      guard case .directory(let inner) = part.directory.entries[name] else { return nil }
      return (part.layer, inner)
    }
  }

  private func hiders(
    _ name: ByteString, from merged: MergedDirectory, to directory: MergedDirectory, _ hiders: [Int: Int]
  ) -> [Int: Int] {
    var hiders = hiders
    for part in merged.parts where !directory.parts.contains(where: { $0.layer == part.layer }) {
      hiders[part.layer] =
        merged.parts.first { above in
          guard above.layer < part.layer else { return false }
          if above.directory.entries[".wh." + name] != nil { return true }
          switch above.directory.entries[name] {
          case .file: return true
          case .directory(let inner): return inner.isOpaque
          case nil: return false
          }
        }?.layer
    }
    return hiders
  }

  private mutating func append(
    _ merged: MergedDirectory, _ name: ByteString, _ kind: FileKind, _ layer: Int,
    _ kinds: [(layer: Int, kind: FileKind)]
  ) {
    let below = kinds.filter { $0.layer > layer }
    let main = stack.count - 1
    let isMerged = kind == .directory && below.last?.kind == .directory
    let verdict =
      layer == main
      ? "unchanged" : below.last?.layer != main ? "added" : isMerged ? "unchanged" : "overridden"
    append(merged, name, kind, verdict, [layer] + below.map(\.layer))
  }

  private mutating func append(
    _ merged: MergedDirectory, _ name: ByteString, _ kind: FileKind, _ verdict: String, _ layers: [Int]
  ) {
    let paths = layers.map { String(escaping: roots[$0].bytes) }
    entries.append(
      ComparisonEntry(
        path: String(escaping: (merged.path / name).bytes), kind: Self.word(for: kind), verdict: verdict,
        layer: paths[0],
        below: Array(paths.dropFirst())))
  }

  private static func word(for kind: FileKind) -> String {
    switch kind {
    case .regular: "file"
    case .symbolicLink: "link"
    case .characterDevice, .blockDevice: "device"
    default: "\(kind)"
    }
  }

  private func kind(of name: ByteString, in part: LayerPart) -> FileKind? {
    switch part.directory.entries[name] {
    case .directory: return .directory
    case .file(let index):
      let form = stack[part.layer].files[index].form
      return form.isOverlayWhiteout ? nil : form.kind
    case nil: return nil
    }
  }

  private func hides(_ name: ByteString, _ part: LayerPart) -> Bool {
    if part.directory.entries[".wh." + name] != nil { return true }
    guard case .file(let index) = part.directory.entries[name] else { return false }
    return stack[part.layer].files[index].form.isOverlayWhiteout
  }
}

/// An entry in the output of `bundlefs diff --json` and `tree --json`.
struct ComparisonEntry: Decodable, Equatable {
  var path: String
  var kind: String
  var verdict: String
  var layer: String
  var below: [String]

  /// Whether `diff` lists it.
  var isDifference: Bool {
    switch verdict {
    case "unchanged": false
    case "added": kind != "directory"
    default: true
    }
  }
}

/// The output of `bundlefs diff --json` and `tree --json`.
struct ComparisonReport: Decodable {
  struct Layer: Decodable {
    var path: String
    var overrides: Int
    var adds: Int
    var hides: Int
  }
  var layers: [Layer]
  var overridden: Int
  var added: Int
  var hidden: Int
  var unchanged: Int
  var entries: [ComparisonEntry]
}
