import Posix
import TestSupport

/// Compares a mounted tree with the model, entry by entry.
struct TreeComparison {
  /// The file system under test.
  enum Implementation {
    case bundlefs
    /// The kernel's overlayfs. Directory mtimes, link counts and inode numbers are not compared, and whiteouts of
    /// unmerged directories may be listed.
    case overlayfs
  }

  /// The identity of an inode in the model.
  enum Identity: Hashable {
    case file(layer: Int, index: Int)
    case directory(ByteString)
  }

  /// What to compare.
  struct Scope {
    /// The names to look up in directories that lack them; nil for all names in the stack.
    var absentNames: Set<ByteString>?
    /// The files whose link count may be stale.
    var uncertainLinkCounts: Set<Identity> = []
    /// Whether to list a directory before looking up its names. A listing may refresh stale attributes in the
    /// kernel and so hide them.
    var listsFirst = true
  }

  private let stack: [PlannedLayer]
  private let links: [[Int: Int]]
  private let implementation: Implementation
  private let root: ByteString
  private let absentNames: Set<ByteString>
  private let scope: Scope
  private var inodes: [UInt64: Identity] = [:]
  private var identities: [Identity: UInt64] = [:]
  private(set) var differences: [String] = []

  /// All differences between the tree at the path and the model.
  static func differences(
    _ stack: [PlannedLayer], at root: ByteString, implementation: Implementation, scope: Scope = Scope()
  ) -> [String] {
    var comparison = TreeComparison(stack, at: root, implementation: implementation, scope: scope)
    let model = MergedDirectory.root(of: stack)
    comparison.recordingErrors("/") { comparison in
      _ = try comparison.compareStatus(.directory(model), at: root)
      try comparison.compareDirectory(model, at: root)
    }
    return comparison.differences
  }

  private init(_ stack: [PlannedLayer], at root: ByteString, implementation: Implementation, scope: Scope) {
    self.stack = stack
    self.implementation = implementation
    self.root = root
    links = stack.map(\.links)
    absentNames = scope.absentNames ?? stack.reduce(into: []) { $0.formUnion($1.root.allNames) }
    self.scope = scope
  }

  /// - Parameter isRespelled: whether the path has another spelling than the listings show.
  private mutating func compareDirectory(
    _ model: MergedDirectory, at path: ByteString, isRespelled: Bool = false
  ) throws {
    var listing = scope.listsFirst ? try self.listing(path, model) : [:]
    var statuses: [ByteString: StatResult] = [:]
    compareHidden(model, at: path)
    for name in model.names.sorted() {
      guard let entry = model.lookup(name) else { continue }
      recordingErrors(path / name) { comparison in
        statuses[name] = try comparison.compareStatus(entry, at: path / name)
        try comparison.compareInside(entry, at: path / name, isRespelled: isRespelled)
      }
    }
    if !isRespelled { compareOtherSpellings(model, at: path) }
    if !scope.listsFirst { listing = try self.listing(path, model) }
    for (name, status) in statuses.sorted(by: { $0.key < $1.key }) {
      compareListed(listing[name], status, at: path / name)
    }
  }

  /// Looks entries up by spellings that the listing does not show.
  private mutating func compareOtherSpellings(_ model: MergedDirectory, at path: ByteString) {
    let shown = model.names
    for name in absentNames.subtracting(shown).sorted() {
      guard let entry = model.lookup(name) else { continue }
      recordingErrors(path / name) { comparison in
        _ = try comparison.compareStatus(entry, at: path / name)
        try comparison.compareInside(entry, at: path / name, isRespelled: true)
      }
    }
  }

  /// Lists a directory and compares the names.
  private mutating func listing(_ path: ByteString, _ model: MergedDirectory) throws
    -> [ByteString: ListedEntry]
  {
    let listing = try path.list()
    let listed = Dictionary(listing.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    if listed.count != listing.count {
      compare(path, "names listed more than once", "once", listing.map(\.name).sorted())
    }
    let expected = model.names
    for name in expected.subtracting(listed.keys).sorted() { compare(path / name, "listed", "yes", "no") }
    for name in Set(listed.keys).subtracting(expected).sorted() where !isToleratedWhiteout(name, model) {
      compare(path / name, "listed", "no", "yes")
    }
    return listed
  }

  private mutating func compareListed(_ listed: ListedEntry?, _ status: StatResult, at path: ByteString) {
    guard let listed else { return }
    if implementation == .bundlefs { compare(path, "d_ino", status.inode, listed.inode) }
    if let kind = listed.kind { compare(path, "d_type", status.kind, kind) }
  }

  /// Whether overlayfs lists this name because its directory has a single part.
  private func isToleratedWhiteout(_ name: ByteString, _ model: MergedDirectory) -> Bool {
    guard implementation == .overlayfs, model.parts.count == 1, let part = model.parts.first,
      case .file(let index) = part.directory.entries[name]
    else { return false }
    return stack[part.layer].files[index].form.isOverlayWhiteout
  }

  /// Looks up names that must not exist: hidden ones, whiteouts and names from other folders.
  private mutating func compareHidden(_ model: MergedDirectory, at path: ByteString) {
    let whiteouts = absentNames.filter { $0.count <= 251 }.map { ".wh." + $0 }
    for name in absentNames.union(whiteouts).union([".wh..wh..opq"]) where model.lookup(name) == nil {
      do {
        let status = try (path / name).status()
        compare(path / name, "hidden", "ENOENT", "found, \(status)")
      } catch let error as DiskError {
        if error.errno != .noSuchFileOrDirectory {
          compare(path / name, "hidden", "ENOENT", error.errno.description)
        }
      } catch {
        compare(path / name, "hidden", "ENOENT", "\(error)")
      }
    }
  }

  private mutating func compareStatus(_ entry: MergedEntry, at path: ByteString) throws -> StatResult {
    let status = try path.status()
    let metadata = metadata(of: entry)
    compare(path, "mode", String(metadata.permissions, radix: 8), String(status.permissions, radix: 8))
    compare(path, "owner", metadata.owner, status.owner)
    compare(path, "group", metadata.group, status.group)
    switch entry {
    case .file(let layer, let index):
      let form = stack[layer].files[index].form
      compare(path, "type", form.kind, status.kind)
      compare(path, "size", form.size, status.size)
      compare(path, "device", form.rdev, status.rdev)
      if !scope.uncertainLinkCounts.contains(.file(layer: layer, index: index)) {
        compare(path, "links", UInt64(links[layer][index] ?? 0), status.links)
      }
      compare(path, "mtime", metadata.modified, status.modified)
      compareIdentity(.file(layer: layer, index: index), status, at: path)
    case .directory(let model):
      compare(path, "type", .directory, status.kind)
      if implementation == .bundlefs {
        compare(path, "links", 1, status.links)
        compare(path, "mtime", model.modified, status.modified)
      }
      compareIdentity(.directory(model.path), status, at: path)
    }
    try compareAttributes(entry, metadata, at: path)
    return status
  }

  private mutating func compareIdentity(
    _ identity: Identity, _ status: StatResult, at path: ByteString
  ) {
    guard implementation == .bundlefs else { return }
    if let other = inodes.updateValue(identity, forKey: status.inode), other != identity {
      compare(path, "st_ino \(status.inode) is only of", "\(identity)", "\(other) too")
    }
    if let other = identities.updateValue(status.inode, forKey: identity) {
      compare(path, "st_ino of another link", other, status.inode)
    }
  }

  private mutating func compareInside(
    _ entry: MergedEntry, at path: ByteString, isRespelled: Bool
  ) throws {
    switch entry {
    case .directory(let model): try compareDirectory(model, at: path, isRespelled: isRespelled)
    case .file(let layer, let index):
      switch stack[layer].files[index].form {
      case .regular(let content): compareContent(content, try path.read(), at: path)
      case .link(let target): compare(path, "target", target, try path.linkTarget())
      default: break
      }
    }
  }

  private mutating func compareContent(_ expected: [UInt8], _ seen: [UInt8], at path: ByteString) {
    if expected == seen { return }
    let offset = zip(expected, seen).enumerated().first { $0.element.0 != $0.element.1 }?.offset
    compare(
      path, "content", "\(expected.count) bytes",
      "\(seen.count) bytes, the first difference at \(offset ?? min(expected.count, seen.count))")
  }

  /// Compares the `user.` attributes except those of overlayfs.
  private mutating func compareAttributes(
    _ entry: MergedEntry, _ metadata: PlannedMetadata, at path: ByteString
  ) throws {
    let shown = try path.attributeNames().filter {
      $0.hasPrefix("user.") && !$0.hasPrefix("user.overlay.")
    }
    compare(path, "xattr names", metadata.attributes.keys.sorted(), shown.sorted())
    for (name, value) in metadata.attributes where shown.contains(name) {
      compare(path, "xattr \(name)", value, try path.attribute(name))
    }
  }

  private func metadata(of entry: MergedEntry) -> PlannedMetadata {
    switch entry {
    case .file(let layer, let index): stack[layer].files[index].metadata
    case .directory(let model):
      (model.parts.first { !$0.directory.isAboveLayer } ?? model.parts[0]).directory.metadata
    }
  }

  private mutating func recordingErrors(_ path: ByteString, _ body: (inout TreeComparison) throws -> Void) {
    do { try body(&self) } catch { compare(path, "reachable", "yes", "\(error)") }
  }

  private mutating func compare<Value: Equatable>(
    _ path: ByteString, _ subject: String, _ expected: Value, _ seen: Value
  ) {
    if expected == seen { return }
    differences.append("\(path): \(subject): expected \(expected), seen \(seen)")
  }

  private mutating func compare(
    _ path: ByteString, _ subject: String, _ expected: String, _ seen: [ByteString]
  ) {
    compare(path, subject, expected, "\(seen)")
  }
}

extension PlannedDirectory {
  /// All names in this directory and below.
  var allNames: Set<ByteString> {
    entries.reduce(into: Set(entries.keys)) { names, entry in
      if case .directory(let inner) = entry.value { names.formUnion(inner.allNames) }
    }
  }
}
