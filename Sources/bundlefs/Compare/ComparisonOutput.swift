import Layers
import Posix
import Routing

/// The differences as text, grouped by layer.
enum DifferenceOutput {
  static func print(_ walker: inout ComparisonWalker, _ colours: Colours) throws(Errno) {
    var lines = [[String]](repeating: [], count: walker.layers.count)
    try walker.walk { entry in
      guard entry.name.isCounted, let layer = entry.name.layers.first else { return }
      let status = entry.name.status
      lines[layer].append("  " + colours.text(verb(for: status), status) + entry.shownPath)
    }
    for (layer, lines) in zip(walker.layers, lines) where !lines.isEmpty {
      Terminal.print(([colours.bold(layer.escapingControls)] + lines).joined(separator: "\n"))
    }
    Terminal.print(walker.tally.summary)
  }

  private static func verb(for status: ComparedName.Status) -> String {
    switch status {
    case .unchanged: ""
    case .overridden: "overrides  "
    case .added: "adds       "
    case .hidden: "hides      "
    }
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
    }
  }
}
