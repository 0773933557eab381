import Posix
import TestSupport

/// Whiteouts, opaque marks, and trees that come from outside the layers or leave them.
extension LayerMutator {
  mutating func addWhiteout(_ layer: Int) throws -> String? {
    // Mostly for names that are there in some layer: others hide nothing.
    let other = random.number(0...layers.count - 1)
    guard let hidden = random.percent(70) ? entry(other) : free(layer), let name = hidden.last,
      case let parent = Array(hidden.dropLast()), layers[layer].directory(parent) != nil
    else { return nil }
    if random.percent(50) {
      let path = parent + [name]
      switch layers[layer].entry(path) {
      case .directory?: return nil
      case .file?:
        willRemove(path, layer)
        if random.percent(50) {
          let fresh = fresh(layer)
          try fresh.makeWhiteout()
          try fresh.rename(to: layers[layer].disk(path))
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
    sight.forget(below: hidden)
    try added(path, .regular(content: []), layer)
    return "whiteout \(words(path))"
  }

  mutating func removeWhiteout(_ layer: Int) throws -> String? {
    let files = layers[layer].plan.files
    let marks = layers[layer].entries.filter { path, entry in
      guard case .file(let index) = entry else { return false }
      return files[index].form.isOverlayWhiteout || (path.last ?? "").hasPrefix(".wh.")
    }
    guard !marks.isEmpty else { return nil }
    let path = random.pick(marks).path
    willRemove(path, layer)
    try layers[layer].disk(path).remove()
    sight.forget(below: Array(path.dropLast()))
    try removed(path, layer)
    return "remove the whiteout \(words(path))"
  }

  mutating func toggleOpaque(_ layer: Int) throws -> String? {
    let path = directory(layer)
    // A root that hides everything below makes for a dull run.
    if path.isEmpty && random.percent(80) { return nil }
    guard let marks = layers[layer].directory(path)?.marks else { return nil }
    sight.forget(below: path)
    if random.percent(35) { return try toggleOpaqueFile(path, layer) }
    let mark = random.percent(50) ? OpaqueMarks.trusted : .user
    let disk = layers[layer].disk(path)
    for name in mark.attributes {
      if marks.contains(mark) {
        try disk.removeAttribute(name)
      } else {
        try disk.setAttribute(name, [UInt8(ascii: "y")])
      }
    }
    layers[layer].edit(path) { $0.marks.formSymmetricDifference(mark) }
    try layers[layer].refresh(path)
    return "\(marks.contains(mark) ? "take away" : "add") \(mark.attributes): \(words(path))"
  }

  private mutating func toggleOpaqueFile(_ path: Path, _ layer: Int) throws -> String? {
    let mark = path + [".wh..wh..opq"]
    switch layers[layer].entry(mark) {
    case .directory?: return nil
    case .file?:
      willRemove(mark, layer)
      try layers[layer].disk(mark).remove()
      try removed(mark, layer)
      return "unlink \(words(mark))"
    case nil:
      try layers[layer].disk(mark).write("")
      try added(mark, .regular(content: []), layer)
      return "make \(words(mark))"
    }
  }

  /// A whole tree moves into the layer: a new one, or one that came out of a layer earlier.
  mutating func moveIn(_ layer: Int) throws -> String? {
    guard let path = free(layer) else { return nil }
    let fit = outside.indices.filter { isOneFileSystem || outside[$0].layer == layer }
    let tree =
      if let index = fit.isEmpty || random.percent(30) ? nil : random.pick(fit) {
        outside.remove(at: index)
      } else {
        try makeTree(layer)
      }
    try tree.path.rename(to: layers[layer].disk(path))
    sight.forget(below: path)
    var places: [Int: Int] = [:]
    for (index, file) in tree.files.enumerated() { places[index] = layers[layer].add(file) }
    layers[layer].set(tree.entry.renumbered(places), at: path)
    try layers[layer].refresh(path.dropLast())
    try layers[layer].refresh(path)
    return "move in \(words(path))"
  }

  private mutating func makeTree(_ layer: Int) throws -> OutsideTree {
    let plans = StackGenerator.stack(
      seed: random.next(), count: 1, isOverlayOnly: false, scale: .tiny, names: names)
    let path = fresh(layer)
    try path.makeDirectory()
    try LayerMaker.make(plans[0], at: path)
    return OutsideTree(path: path, layer: layer, files: plans[0].files, entry: .directory(plans[0].root))
  }

  mutating func moveOut(_ layer: Int) throws -> String? {
    guard let path = entry(layer), let entry = layers[layer].entry(path) else { return nil }
    let inside = PlannedEntry.links(below: entry)
    let all = layers[layer].plan.links
    // A file with one more name elsewhere in the layer stays.
    guard inside.allSatisfy({ all[$0.key] == $0.value }) else { return nil }
    let tree = fresh(layer)
    try layers[layer].disk(path).rename(to: tree)
    let indices = inside.keys.sorted()
    let places = Dictionary(uniqueKeysWithValues: indices.enumerated().map { ($1, $0) })
    let files = indices.map { layers[layer].plan.files[$0] }
    try removed(path, layer)
    outside.append(OutsideTree(path: tree, layer: layer, files: files, entry: entry.renumbered(places)))
    return "move out \(words(path))"
  }
}

extension PlannedEntry {
  /// How many names below stand for each file.
  static func links(below entry: PlannedEntry) -> [Int: Int] {
    var counts: [Int: Int] = [:]
    switch entry {
    case .file(let index): counts[index] = 1
    case .directory(let directory): directory.countLinks(into: &counts)
    }
    return counts
  }

  /// The same with other places for the files.
  func renumbered(_ places: [Int: Int]) -> PlannedEntry {
    switch self {
    case .file(let index): return .file(places[index] ?? index)
    case .directory(var directory):
      directory.entries = directory.entries.mapValues { $0.renumbered(places) }
      return .directory(directory)
    }
  }
}
