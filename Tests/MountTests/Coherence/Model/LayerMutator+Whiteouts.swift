import Posix
import TestSupport

/// Whiteouts, opaque markers, and trees moved into and out of the layers.
extension LayerMutator {
  mutating func addWhiteout(_ layer: Int) throws -> String? {
    // Mostly for existing names: others hide nothing.
    let other = random.number(0...layers.count - 1)
    guard let hidden = random.percent(70) ? entry(other) : unusedPath(layer), let name = hidden.last,
      case let parent = Array(hidden.dropLast()), layers[layer].directory(parent) != nil
    else { return nil }
    if random.percent(50) {
      let path = parent + [name]
      switch layers[layer].entry(path) {
      case .directory?: return nil
      case .file?:
        willRemove(path, layer)
        if random.percent(50) {
          let temporary = temporaryPath(layer)
          try temporary.makeWhiteout()
          try temporary.rename(to: layers[layer].disk(path))
        } else {
          try layers[layer].disk(path).remove()
          try layers[layer].disk(path).makeWhiteout()
        }
      case nil: try layers[layer].disk(path).makeWhiteout()
      }
      try added(path, .character(major: 0, minor: 0), layer)
      return "whiteout \(words(path))"
    }
    let path = parent + [".wh." + name]
    guard name.count <= 251, layers[layer].entry(path) == nil else { return nil }
    try layers[layer].disk(path).write("")
    hardLinks.forget(below: hidden)
    try added(path, .regular(content: []), layer)
    return "whiteout \(words(path))"
  }

  mutating func removeWhiteout(_ layer: Int) throws -> String? {
    let files = layers[layer].plan.files
    let whiteouts = layers[layer].entries.filter { path, entry in
      guard case .file(let index) = entry else { return false }
      return files[index].form.isOverlayWhiteout || (path.last ?? "").hasPrefix(".wh.")
    }
    guard !whiteouts.isEmpty else { return nil }
    let path = random.pick(whiteouts).path
    willRemove(path, layer)
    try layers[layer].disk(path).remove()
    hardLinks.forget(below: Array(path.dropLast()))
    try removed(path, layer)
    return "remove whiteout \(words(path))"
  }

  mutating func toggleOpaque(_ layer: Int) throws -> String? {
    let path = directory(layer)
    // Rarely at the root, which would hide all layers below.
    if path.isEmpty && random.percent(80) { return nil }
    guard let markers = layers[layer].directory(path)?.opaqueMarkers else { return nil }
    hardLinks.forget(below: path)
    if random.percent(35) { return try toggleOpaqueFile(path, layer) }
    let marker = random.percent(50) ? OpaqueMarkers.trusted : .user
    let disk = layers[layer].disk(path)
    for name in marker.attributes {
      if markers.contains(marker) {
        try disk.removeAttribute(name)
      } else {
        try disk.setAttribute(name, [UInt8(ascii: "y")])
      }
    }
    layers[layer].edit(path) { $0.opaqueMarkers.formSymmetricDifference(marker) }
    try layers[layer].refresh(path)
    return "\(markers.contains(marker) ? "remove" : "add") \(marker.attributes): \(words(path))"
  }

  private mutating func toggleOpaqueFile(_ path: Path, _ layer: Int) throws -> String? {
    let marker = path + [".wh..wh..opq"]
    switch layers[layer].entry(marker) {
    case .directory?: return nil
    case .file?:
      willRemove(marker, layer)
      try layers[layer].disk(marker).remove()
      try removed(marker, layer)
      return "unlink \(words(marker))"
    case nil:
      try layers[layer].disk(marker).write("")
      try added(marker, .regular(content: []), layer)
      return "make \(words(marker))"
    }
  }

  /// Moves a whole tree into the layer: a new one, or one that was moved out earlier.
  mutating func moveIn(_ layer: Int) throws -> String? {
    guard let path = unusedPath(layer) else { return nil }
    let movable = outside.indices.filter { onOneFileSystem || outside[$0].layer == layer }
    let tree =
      if let index = movable.isEmpty || random.percent(30) ? nil : random.pick(movable) {
        outside.remove(at: index)
      } else {
        try makeTree(layer)
      }
    try tree.path.rename(to: layers[layer].disk(path))
    hardLinks.forget(below: path)
    var indices: [Int: Int] = [:]
    for (index, file) in tree.files.enumerated() { indices[index] = layers[layer].add(file) }
    layers[layer].set(tree.entry.renumbered(indices), at: path)
    try layers[layer].refresh(path.dropLast())
    try layers[layer].refresh(path)
    return "move in \(words(path))"
  }

  private mutating func makeTree(_ layer: Int) throws -> OutsideTree {
    let plans = StackGenerator.stack(
      seed: random.next(), count: 1, isOverlayOnly: false, scale: .tiny, names: names,
      limits: limits)
    let path = temporaryPath(layer)
    try path.makeDirectory()
    try LayerMaker.make(plans[0], at: path)
    return OutsideTree(path: path, layer: layer, files: plans[0].files, entry: .directory(plans[0].root))
  }

  mutating func moveOut(_ layer: Int) throws -> String? {
    guard let path = entry(layer), let entry = layers[layer].entry(path) else { return nil }
    let inside = PlannedEntry.links(below: entry)
    let all = layers[layer].plan.links
    // Not if a file has another name elsewhere in the layer.
    guard inside.allSatisfy({ all[$0.key] == $0.value }) else { return nil }
    let tree = temporaryPath(layer)
    try layers[layer].disk(path).rename(to: tree)
    let fileIndices = inside.keys.sorted()
    let newIndices = Dictionary(uniqueKeysWithValues: fileIndices.enumerated().map { ($1, $0) })
    let files = fileIndices.map { layers[layer].plan.files[$0] }
    try removed(path, layer)
    outside.append(OutsideTree(path: tree, layer: layer, files: files, entry: entry.renumbered(newIndices)))
    return "move out \(words(path))"
  }
}

extension PlannedEntry {
  /// The number of names of each file below an entry.
  static func links(below entry: PlannedEntry) -> [Int: Int] {
    var counts: [Int: Int] = [:]
    switch entry {
    case .file(let index): counts[index] = 1
    case .directory(let directory): directory.countLinks(into: &counts)
    }
    return counts
  }

  /// The same entry with other file indices.
  func renumbered(_ indices: [Int: Int]) -> PlannedEntry {
    switch self {
    case .file(let index): return .file(indices[index] ?? index)
    case .directory(var directory):
      directory.entries = directory.entries.mapValues { $0.renumbered(indices) }
      return .directory(directory)
    }
  }
}
