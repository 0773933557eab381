import Glibc
import Posix
import TestSupport

/// Changes to directories, and renames.
extension LayerMutator {
  mutating func makeDirectory(_ layer: Int) throws -> String? {
    guard let path = unusedPath(layer) else { return nil }
    try makeDirectory(path, layer)
    var description = "mkdir \(words(path))"
    if random.percent(50) {
      let inner = path + [random.pick(names)]
      let content = self.content()
      try layers[layer].disk(inner).write(content)
      try added(inner, .regular(content: content), layer)
      description += " with \(words(inner))"
    }
    return description
  }

  private mutating func makeDirectory(_ path: Path, _ layer: Int) throws {
    try layers[layer].disk(path).makeDirectory()
    hardLinks.forget(below: path)
    let metadata = PlannedMetadata(try layers[layer].disk(path).status())
    layers[layer].set(.directory(PlannedDirectory(metadata: metadata)), at: path)
    try layers[layer].refresh(path.dropLast())
  }

  mutating func removeEmptyDirectory(_ layer: Int) throws -> String? {
    let empty = entry(layer) { entry in
      if case .directory(let directory) = entry { directory.entries.isEmpty } else { false }
    }
    guard let path = empty else { return nil }
    try layers[layer].disk(path).removeDirectory()
    try removed(path, layer)
    return "rmdir \(words(path))"
  }

  mutating func removeTree(_ layer: Int) throws -> String? {
    guard let path = entry(layer, where: { if case .directory = $0 { true } else { false } }) else {
      return nil
    }
    try removeTree(path, layer)
    return "rm -r \(words(path))"
  }

  private mutating func removeTree(_ path: Path, _ layer: Int) throws {
    willRemove(path, layer)
    (layers[layer].disk(path)).removeTree()
    try removed(path, layer)
  }

  /// Renames within or between directories, to an unused name or over an existing entry.
  mutating func rename(_ layer: Int) throws -> String? {
    let isDirectory: (PlannedEntry) -> Bool = { if case .directory = $0 { true } else { false } }
    // Directories are rarer than files, but their renames are harder to follow.
    guard let old = random.percent(50) ? entry(layer, where: isDirectory) : entry(layer),
      let moved = layers[layer].entry(old)
    else { return nil }
    let new: Path
    if random.percent(30), let target = entry(layer) {
      guard canReplace(layers[layer].entry(target), moved) else { return nil }
      new = target
    } else if random.percent(40) {
      new = Array(old.dropLast()) + [random.pick(names)]
      guard layers[layer].entry(new) == nil else { return nil }
    } else if let target = unusedPath(layer) {
      new = target
    } else {
      return nil
    }
    guard !new.starts(with: old), !old.starts(with: new) else { return nil }
    willRemove(new, layer)
    try layers[layer].disk(old).rename(to: layers[layer].disk(new))
    hardLinks.forget(below: old)
    hardLinks.forget(below: new)
    layers[layer].set(nil, at: old)
    layers[layer].set(moved, at: new)
    try layers[layer].refresh(old.dropLast())
    try layers[layer].refresh(new.dropLast())
    try layers[layer].refresh(new)
    return "rename \(words(old)) to \(words(new))"
  }

  /// Whether rename(2) replaces the entry; it keeps both of two names of one file.
  private func canReplace(_ old: PlannedEntry?, _ new: PlannedEntry) -> Bool {
    switch (old, new) {
    case (.file(let old)?, .file(let new)): old != new
    case (.directory(let old)?, .directory): old.entries.isEmpty
    default: false
    }
  }

  mutating func exchange(_ layer: Int) throws -> String? {
    let isDirectory: (PlannedEntry) -> Bool = { if case .directory = $0 { true } else { false } }
    let areDirectories = random.percent(60)
    guard let one = areDirectories ? entry(layer, where: isDirectory) : entry(layer),
      let other = areDirectories ? entry(layer, where: isDirectory) : entry(layer),
      !one.starts(with: other), !other.starts(with: one)
    else { return nil }
    let (first, second) = (layers[layer].entry(one), layers[layer].entry(other))
    if case .file(let first)? = first, case .file(let second)? = second, first == second { return nil }
    try layers[layer].disk(one).exchange(with: layers[layer].disk(other))
    hardLinks.forget(below: one)
    hardLinks.forget(below: other)
    layers[layer].set(second, at: one)
    layers[layer].set(first, at: other)
    for path in [Array(one.dropLast()), Array(other.dropLast()), one, other] {
      try layers[layer].refresh(path)
    }
    return "exchange \(words(one)) and \(words(other))"
  }

  /// Replaces a file by a directory with entries, or the reverse.
  mutating func changeKind(_ layer: Int) throws -> String? {
    guard let path = entry(layer), let old = layers[layer].entry(path) else { return nil }
    switch old {
    case .file:
      willRemove(path, layer)
      try layers[layer].disk(path).remove()
      try removed(path, layer)
      try makeDirectory(path, layer)
      for name in [random.pick(names), random.pick(names)] where layers[layer].entry(path + [name]) == nil {
        let content = self.content()
        try layers[layer].disk(path + [name]).write(content)
        try added(path + [name], .regular(content: content), layer)
      }
      return "from a file to a directory: \(words(path))"
    case .directory:
      try removeTree(path, layer)
      let content = self.content()
      try layers[layer].disk(path).write(content)
      try added(path, .regular(content: content), layer)
      return "from a directory to a file: \(words(path))"
    }
  }
}
