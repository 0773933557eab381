import Layers
import Posix
import Routing

/// The differences as text, grouped by layer.
enum DifferenceOutput {
  /// - Parameters:
  ///   - isWhole: whether the whole mount is compared, so that a layer without differences contributes nothing.
  ///   - hints: by layer, what the user may have meant instead.
  static func print(
    _ walker: inout ComparisonWalker, isWhole: Bool, hints: [String?], _ colours: Colours
  ) throws(Errno) {
    var lines = [[String]](repeating: [], count: walker.layers.count)
    let labels = LayerLabels(walker.layers)
    let main = lines.count - 1
    try walker.walk { entry in
      guard entry.name.isCounted else { return }
      let status = entry.name.status
      let line = "  " + colours.text(verb(for: status), status) + entry.shownPath
      for layer in entry.name.listingLayers(main: main) {
        lines[layer].append(line + labels.others(of: entry.name, than: layer))
        lines[layer] += keys(of: entry.name, in: layer)
      }
    }
    for (index, lines) in lines.enumerated() where !lines.isEmpty || (isWhole && index < main) {
      let title = colours.bold(walker.layers[index].escapingControls)
      let hint = hints.indices.contains(index) ? hints[index].map { ["  hint: \($0.escapingControls)"] } : nil
      let text = [title + (lines.isEmpty ? "  contributes nothing" : "")] + lines + (hint ?? [])
      Terminal.print(text.joined(separator: "\n"))
    }
    Terminal.print(walker.tally.summary)
  }

  /// The keys of a merged table that a layer gives their values.
  private static func keys(of name: ComparedName, in layer: Int) -> [String] {
    let keys = name.keys.keys.filter { $0.layer == layer }.map { key in
      "    " + (key.isOverride ? "overrides  " : "adds       ") + "\"\(key.key.escapingControls)\""
    }
    let isShort = name.keys.more > 0 && layer == name.layers.first
    return keys + (isShort ? ["    and \(name.keys.more) more keys"] : [])
  }

  private static func verb(for status: ComparedName.Status) -> String {
    switch status {
    case .unchanged: ""
    case .overridden: "overrides  "
    case .added: "adds       "
    case .hidden: "hides      "
    case .collision: "has twice  "
    case .merged: "merges     "
    case .excluded: "excludes   "
    }
  }
}

/// Short names of layers: the last component of the path, or the path where another layer has the same.
struct LayerLabels {
  private let labels: [String]

  /// By layer.
  var all: [String] { labels }

  /// - Parameter paths: for display; top first, MAIN last.
  init(_ paths: [String]) {
    let names = paths.map { $0.split(separator: "/").last.map(String.init) ?? $0 }
    labels = paths.indices.map { index in
      if index == paths.count - 1 { return "MAIN" }
      let isUnique = names.indices.allSatisfy { $0 == index || names[$0] != names[index] }
      return (isUnique ? names[index] : paths[index]).escapingControls
    }
  }

  /// The layers whose entries a visible one hides, or whose tables it contains as well, for the end of the layer's line;
  /// empty where there can be MAIN only.
  func others(of name: ComparedName, than layer: Int) -> String {
    let others = name.layers.filter { $0 != layer }.map { labels[$0] }
    if labels.count <= 2 || others.isEmpty || name.status == .excluded { return "" }
    return "  (\(name.status == .merged ? "with" : "beats") \(others.joined(separator: ", ")))"
  }
}

/// The whole tree as text, annotated where an entry is not MAIN's.
enum TreeOutput {
  static func print(_ walker: inout ComparisonWalker, title: String, _ colours: Colours) throws(Errno) {
    Terminal.print(title.escapingControls)
    let layers = walker.layers.map(\.escapingControls)
    try walker.walk { entry in
      let branches = entry.isLast.dropLast().map { $0 ? "    " : "│   " }.joined()
      Terminal.print(
        branches + (entry.isLast.last == true ? "└── " : "├── ")
          + colours.text(entry.shownName, entry.name.status) + annotation(of: entry.name, layers))
    }
    Terminal.print(walker.tally.summary)
  }

  private static func annotation(of name: ComparedName, _ layers: [String]) -> String {
    guard let layer = name.layers.first.map({ layers[$0] }) else { return "" }
    switch name.status {
    case .unchanged: return ""
    case .overridden: return "  (\(layer), overrides)"
    case .added: return "  (\(layer), adds)"
    case .hidden: return "  (hidden by \(layer))"
    case .collision:
      let isFolder = name.kind == .directory
      return "  (\(layer) has the name in another spelling, too\(isFolder ? "; the folders are merged" : ""))"
    case .excluded: return "  (excluded by the option 'hide')"
    case .merged: return "  (\(name.layers.map { layers[$0] }.joined(separator: ", ")), merged)"
    }
  }
}
