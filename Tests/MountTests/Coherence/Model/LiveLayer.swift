import Posix
import TestSupport

/// A layer on disk together with its plan, which changes in step.
struct LiveLayer {
  /// A path in the layer; empty for its root.
  typealias Path = [ByteString]

  let root: ByteString
  /// A folder on the layer's file system, outside the layer.
  let aside: ByteString
  private(set) var plan: PlannedLayer

  /// Makes the layer on disk. Both folders must exist, and `root` must be empty.
  init(_ plan: PlannedLayer, at root: ByteString, aside: ByteString) throws {
    self.root = root
    self.aside = aside
    self.plan = plan
    try LayerMaker.make(plan, at: root)
  }

  /// The location of a path on disk.
  func disk(_ path: Path) -> ByteString { path.reduce(root) { $0 / $1 } }

  func entry(_ path: Path) -> PlannedEntry? {
    var entry = PlannedEntry.directory(plan.root)
    for name in path {
      guard case .directory(let directory) = entry, let next = directory.entries[name] else { return nil }
      entry = next
    }
    return entry
  }

  func directory(_ path: Path) -> PlannedDirectory? {
    guard case .directory(let directory)? = entry(path) else { return nil }
    return directory
  }

  func file(_ path: Path) -> (index: Int, file: PlannedFile)? {
    guard case .file(let index)? = entry(path) else { return nil }
    return (index, plan.files[index])
  }

  /// The paths of all directories, root first.
  var directories: [Path] {
    [[]]
      + entries.filter {
        if case .directory = $0.entry { true } else { false }
      }.map(\.path)
  }

  /// All entries except the root, in a deterministic order.
  var entries: [(path: Path, entry: PlannedEntry)] { plan.root.entriesBelow([]) }

  /// The paths of a file.
  func names(of index: Int) -> [Path] {
    entries.compactMap { path, entry in
      if case .file(index) = entry { path } else { nil }
    }
  }

  /// Sets or removes the entry at a path.
  mutating func set(_ entry: PlannedEntry?, at path: Path) {
    guard let name = path.last else { return }
    edit(path.dropLast()) { $0.entries[name] = entry }
  }

  mutating func edit(_ path: ArraySlice<ByteString>, _ body: (inout PlannedDirectory) -> Void) {
    plan.root.edit(path, body)
  }

  mutating func edit(_ path: Path, _ body: (inout PlannedDirectory) -> Void) { edit(path[...], body) }

  mutating func edit(file index: Int, _ body: (inout PlannedFile) -> Void) { body(&plan.files[index]) }

  /// Adds a file without a name.
  /// - Returns: its index.
  mutating func add(_ file: PlannedFile) -> Int {
    plan.files.append(file)
    return plan.files.count - 1
  }

  /// Copies mode, owner and mtime from the disk to the plan.
  mutating func refresh(_ path: Path) throws {
    let status = try disk(path).status()
    switch entry(path) {
    case .file(let index)?: plan.files[index].metadata.refresh(status)
    case .directory?: edit(path[...]) { $0.metadata.refresh(status) }
    case nil: throw TestFailure("\(disk(path)) is not in the plan")
    }
  }
}

extension PlannedMetadata {
  init(_ status: StatResult) {
    self.init(
      permissions: status.permissions, owner: status.owner, group: status.group, modified: status.modified)
  }

  mutating func refresh(_ status: StatResult) {
    let attributes = attributes
    self = PlannedMetadata(status)
    self.attributes = attributes
  }
}

extension PlannedDirectory {
  func entriesBelow(_ path: [ByteString]) -> [(path: [ByteString], entry: PlannedEntry)] {
    entries.sorted { $0.key < $1.key }.flatMap { name, entry in
      var found = [(path: path + [name], entry: entry)]
      if case .directory(let inner) = entry { found += inner.entriesBelow(path + [name]) }
      return found
    }
  }

  mutating func edit(_ path: ArraySlice<ByteString>, _ body: (inout PlannedDirectory) -> Void) {
    guard let name = path.first else { return body(&self) }
    guard case .directory(var inner)? = entries[name] else { return }
    inner.edit(path.dropFirst(), body)
    entries[name] = .directory(inner)
  }
}
