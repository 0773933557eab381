import Layers
import Posix

/// The numbers of differences by layer. Directories count only if they are hidden or replace a file.
struct ComparisonTally {
  struct Layer {
    var overrides = 0
    var adds = 0
    var hides = 0
    var merges = 0
  }

  private(set) var layers: [Layer]
  var unchanged = 0
  /// Entries that are only seen by their own spelling.
  private(set) var collisions = 0
  /// Tables of strings that are merged.
  private(set) var merged = 0
  /// Names that the option `hide` hides.
  private(set) var excluded = 0

  init(layers count: Int) { layers = Array(repeating: Layer(), count: count) }

  mutating func add(_ name: ComparedName) {
    guard let layer = name.layers.first, name.isCounted else { return }
    switch name.status {
    case .overridden: layers[layer].overrides += 1
    case .added: layers[layer].adds += 1
    case .hidden: layers[layer].hides += 1
    case .collision: collisions += 1
    case .excluded: excluded += 1
    case .merged:
      merged += 1
      for layer in name.layers { layers[layer].merges += 1 }
    // The daemon sends their number with each directory.
    case .unchanged: break
    }
  }

  var total: Layer {
    layers.reduce(into: Layer()) { sum, layer in
      sum.overrides += layer.overrides
      sum.adds += layer.adds
      sum.hides += layer.hides
    }
  }

  var summary: String {
    let total = total
    var text =
      "\(total.overrides) overridden, \(total.adds) added, \(total.hides) hidden, \(unchanged) unchanged"
    if merged > 0 { text += ", \(merged) merged" }
    if excluded > 0 { text += ", \(excluded) excluded" }
    if collisions > 0 { text += ", \(collisions) in several spellings" }
    return text
  }
}

extension ComparedName {
  /// The substitutions that the difference is listed for.
  func listingLayers(main: Int) -> [Int] {
    switch status {
    case .merged: layers.filter { $0 != main }
    case .excluded: layers
    default: Array(layers.prefix(1))
    }
  }

  var isCounted: Bool {
    switch status {
    case .unchanged: false
    case .added: kind != .directory
    case .overridden, .hidden, .collision, .merged, .excluded: true
    }
  }
}
