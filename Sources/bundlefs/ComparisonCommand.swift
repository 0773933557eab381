import Glibc
import Layers
import Posix
import Routing

/// `bundlefs diff MOUNTPOINT [PATH] [--json]` and `bundlefs tree MOUNTPOINT [PATH] [--json]`.
struct ComparisonCommand {
  private let mountPoint: MountPoint
  private let start: [[UInt8]]
  private let isTree: Bool
  private let isJSON: Bool

  /// Reads what follows `diff` or `tree`.
  init(_ arguments: [[UInt8]], isTree: Bool) throws(Failure) {
    let command = isTree ? "tree" : "diff"
    let operands = arguments.filter { $0 != Array("--json".utf8) }
    if let option = operands.first(where: { $0.starts(with: "--".utf8) }) {
      throw .usage("'\(command)' has no option '\(option.shown)'")
    }
    guard let given = operands.first, operands.count <= 2 else {
      throw .usage("'\(command)' needs a MOUNTPOINT, and may have one PATH in it")
    }
    self.isTree = isTree
    isJSON = operands.count < arguments.count
    mountPoint = try MountPoint(mounted: given)
    start = operands.count == 2 ? mountPoint.names(of: operands[1]) : []
    if start.contains(Array("..".utf8)) { throw .usage("the PATH of '\(command)' must not contain '..'") }
  }

  /// Prints the comparison.
  /// - Returns: the exit status: 1 where a directory could not be looked at.
  func run() throws(Failure) -> CInt {
    signal(SIGPIPE, SIG_DFL)
    let faults: [ComparedTree.Fault]
    do throws(Errno) {
      // Where the tree itself is on the terminal, it shows how far it is.
      let isSeen = isTree && !isJSON && isatty(STDOUT_FILENO) == 1
      var tree = try ComparedTree(of: mountPoint, from: start, isWhole: isTree, showsProgress: !isSeen)
      try print(&tree)
      faults = tree.faults
    } catch {
      throw .failed("\(shown(start)): \(ComparedTree.Fault(path: start, error: error).reason)")
    }
    for fault in faults { Terminal.printError("\(shown(fault.path)): not compared: \(fault.reason)") }
    return faults.isEmpty ? 0 : 1
  }

  private func print(_ tree: inout ComparedTree) throws(Errno) {
    if isJSON { return try ComparisonJSON.print(&tree, isWhole: isTree) }
    let colours = Colours.ofOutput
    if isTree {
      try TreeLines.print(&tree, title: shown(start), colours)
    } else {
      try DifferenceLines.print(&tree, colours)
    }
  }

  private func shown(_ path: [[UInt8]]) -> String {
    String(escaping: ([mountPoint.path] + path).joinedPath)
  }
}

/// What differs, layer by layer.
private enum DifferenceLines {
  static func print(_ tree: inout ComparedTree, _ colours: Colours) throws(Errno) {
    var lines = [[String]](repeating: [], count: tree.layers.count)
    try tree.walk { step in
      guard step.name.isCounted, let layer = step.name.layers.first else { return }
      lines[layer].append("  " + colours.text(word(for: step.name.verdict), step.name.verdict) + step.shown)
    }
    for (layer, lines) in zip(tree.layers, lines) where !lines.isEmpty {
      Terminal.print(([colours.bold(layer.withoutControls)] + lines).joined(separator: "\n"))
    }
    Terminal.print(tree.tally.shown)
  }

  private static func word(for verdict: ComparedName.Status) -> String {
    switch verdict {
    case .unchanged: ""
    case .overridden: "overrides  "
    case .added: "adds       "
    case .hidden: "hides      "
    }
  }
}

/// The whole tree, with a note where something is not MAIN's.
private enum TreeLines {
  static func print(_ tree: inout ComparedTree, title: String, _ colours: Colours) throws(Errno) {
    Terminal.print(title.withoutControls)
    let layers = tree.layers.map(\.withoutControls)
    try tree.walk { step in
      let branches = step.isLast.dropLast().map { $0 ? "    " : "│   " }.joined()
      Terminal.print(
        branches + (step.isLast.last == true ? "└── " : "├── ")
          + colours.text(step.shownName, step.name.verdict)
          + note(on: step.name, layers))
    }
    Terminal.print(tree.tally.shown)
  }

  private static func note(on name: ComparedName, _ layers: [String]) -> String {
    guard let layer = name.layers.first.map({ layers[$0] }) else { return "" }
    switch name.verdict {
    case .unchanged: return ""
    case .overridden: return "  (\(layer), overrides)"
    case .added: return "  (\(layer), adds)"
    case .hidden: return "  (hidden by \(layer))"
    }
  }
}

/// One JSON object (RFC 8259), an entry a line.
private enum ComparisonJSON {
  static func print(_ tree: inout ComparedTree, isWhole: Bool) throws(Errno) {
    var entries: [JSONWriter] = []
    let layers = tree.layers
    try tree.walk { step in if isWhole || step.name.isCounted { entries.append(entry(step, layers)) } }
    let tally = tree.tally
    let faults = tree.faults
    let text = JSONWriter.object { json in
      json.name("layers")
      json.array(zip(layers, tally.layers)) { write($1.1, of: $1.0, to: &$0) }
      json.member("overridden", tally.total.overrides)
      json.member("added", tally.total.adds)
      json.member("hidden", tally.total.hides)
      json.member("unchanged", tally.unchanged)
      json.name("entries")
      json.array(entries, onLines: true) { $0.append($1) }
      json.name("faults")
      json.array(faults, onLines: true) { write($1, to: &$0) }
    }
    Terminal.print(text)
  }

  private static func write(_ layer: ComparisonTally.Layer, of path: String, to json: inout JSONWriter) {
    json.object { json in
      json.member("path", path)
      json.member("overrides", layer.overrides)
      json.member("adds", layer.adds)
      json.member("hides", layer.hides)
    }
  }

  private static func write(_ fault: ComparedTree.Fault, to json: inout JSONWriter) {
    json.object { json in
      json.member("path", String(escaping: fault.path.joinedPath))
      json.member("error", fault.reason)
    }
  }

  private static func entry(_ step: ComparedTree.Step, _ layers: [String]) -> JSONWriter {
    var json = JSONWriter()
    json.object { json in
      json.member("path", String(escaping: step.path.joinedPath))
      if String(validating: step.path.joinedPath, as: UTF8.self) == nil {
        json.member("encodedPath", PercentCoding.encoded(path: step.path.joinedPath[...]))
      }
      json.member("kind", word(for: step.name.kind))
      json.member("verdict", word(for: step.name.verdict))
      json.member("layer", step.name.layers.first.map { layers[$0] })
      json.name("below")
      json.strings(step.name.layers.dropFirst().map { layers[$0] })
    }
    return json
  }

  private static func word(for kind: FileKind) -> String {
    switch kind {
    case .regular: "file"
    case .directory: "directory"
    case .symbolicLink: "link"
    case .fifo: "fifo"
    case .socket: "socket"
    case .characterDevice, .blockDevice: "device"
    }
  }

  private static func word(for verdict: ComparedName.Status) -> String {
    switch verdict {
    case .unchanged: "unchanged"
    case .overridden: "overridden"
    case .added: "added"
    case .hidden: "hidden"
    }
  }
}
