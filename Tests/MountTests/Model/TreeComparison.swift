import Posix
import TestSupport

/// Compares a mounted tree with what the model says, entry by entry.
struct TreeComparison {
  /// By whom the tree is served.
  enum Judge {
    case bundlefs
    /// The kernel's own: a directory's time and links and all inode numbers are its own affair there, and it
    /// lists the whiteouts of directories that it does not merge.
    case overlayfs
  }

  /// What makes two paths one file.
  enum Identity: Hashable {
    case file(layer: Int, index: Int)
    case directory(ByteString)
  }

  /// What a comparison leaves out or adds.
  struct Extent {
    /// The names that are looked up where the model does not have them; nil: all that are in the stack.
    var absentNames: Set<ByteString>?
    /// The files whose count of links may be an old one.
    var isUnsureOfLinks: Set<Identity> = []
    /// Whether a directory is listed before or after its names are looked up: a listing may bring the kernel
    /// fresh attributes, and hide that it had old ones.
    var listsFirst = true
  }

  private let stack: [PlannedLayer]
  private let links: [[Int: Int]]
  private let judge: Judge
  private let root: ByteString
  private let pool: Set<ByteString>
  private let extent: Extent
  private var inodes: [UInt64: Identity] = [:]
  private var identities: [Identity: UInt64] = [:]
  private(set) var differences: [String] = []

  /// All differences between the tree at the path and the model.
  static func differences(
    _ stack: [PlannedLayer], at root: ByteString, judge: Judge, extent: Extent = Extent()
  ) -> [String] {
    var comparison = TreeComparison(stack, at: root, judge: judge, extent: extent)
    let model = MergedDirectory.root(of: stack)
    comparison.guarded("/") { comparison in
      _ = try comparison.compareStatus(.directory(model), at: root)
      try comparison.compareDirectory(model, at: root)
    }
    return comparison.differences
  }

  private init(_ stack: [PlannedLayer], at root: ByteString, judge: Judge, extent: Extent) {
    self.stack = stack
    self.judge = judge
    self.root = root
    links = stack.map(\.links)
    pool = extent.absentNames ?? stack.reduce(into: []) { $0.formUnion($1.root.allNames) }
    self.extent = extent
  }

  private mutating func compareDirectory(_ model: MergedDirectory, at path: ByteString) throws {
    var listing = extent.listsFirst ? try self.listing(path, model) : [:]
    var statuses: [ByteString: StatResult] = [:]
    compareHidden(model, at: path)
    for name in model.names.sorted() {
      guard let entry = model.lookup(name) else { continue }
      guarded(path / name) { comparison in
        statuses[name] = try comparison.compareStatus(entry, at: path / name)
        try comparison.compareInside(entry, at: path / name)
      }
    }
    if !extent.listsFirst { listing = try self.listing(path, model) }
    for (name, status) in statuses.sorted(by: { $0.key < $1.key }) {
      compareListed(listing[name], status, at: path / name)
    }
  }

  /// The listing, whose names are compared.
  private mutating func listing(_ path: ByteString, _ model: MergedDirectory) throws
    -> [ByteString: ListedEntry]
  {
    let listing = try path.list().filter { path != root || !Mount.ownNames.contains($0.name) }
    let listed = Dictionary(listing.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    if listed.count != listing.count {
      note(path, "names listed more than once", "once", listing.map(\.name).sorted())
    }
    let expected = model.names
    for name in expected.subtracting(listed.keys).sorted() { note(path / name, "listed", "yes", "no") }
    for name in Set(listed.keys).subtracting(expected).sorted() where !isToleratedWhiteout(name, model) {
      note(path / name, "listed", "no", "yes")
    }
    return listed
  }

  private mutating func compareListed(_ listed: ListedEntry?, _ status: StatResult, at path: ByteString) {
    guard let listed else { return }
    if judge == .bundlefs { note(path, "d_ino", status.inode, listed.inode) }
    if let kind = listed.kind { note(path, "d_type", status.kind, kind) }
  }

  /// overlayfs lists a directory of one layer as it is.
  private func isToleratedWhiteout(_ name: ByteString, _ model: MergedDirectory) -> Bool {
    guard judge == .overlayfs, model.parts.count == 1, let part = model.parts.first,
      case .file(let index) = part.directory.entries[name]
    else { return false }
    return stack[part.layer].files[index].form.isOverlayWhiteout
  }

  /// Names that must not be found: what whiteouts hide, the whiteouts themselves, names of other folders.
  private mutating func compareHidden(_ model: MergedDirectory, at path: ByteString) {
    let whiteouts = pool.filter { $0.count <= 251 }.map { ".wh." + $0 }
    for name in pool.union(whiteouts).union([".wh..wh..opq"]) where model.lookup(name) == nil {
      do {
        let status = try (path / name).status()
        note(path / name, "hidden", "ENOENT", "found, \(status)")
      } catch let error as DiskError {
        if error.errno != .noSuchFileOrDirectory {
          note(path / name, "hidden", "ENOENT", error.errno.description)
        }
      } catch {
        note(path / name, "hidden", "ENOENT", "\(error)")
      }
    }
  }

  private mutating func compareStatus(_ entry: MergedEntry, at path: ByteString) throws -> StatResult {
    let status = try path.status()
    let metadata = metadata(of: entry)
    note(path, "mode", String(metadata.permissions, radix: 8), String(status.permissions, radix: 8))
    note(path, "owner", metadata.owner, status.owner)
    note(path, "group", metadata.group, status.group)
    switch entry {
    case .file(let layer, let index):
      let form = stack[layer].files[index].form
      note(path, "type", form.kind, status.kind)
      note(path, "size", form.size, status.size)
      note(path, "device", form.rdev, status.rdev)
      if !extent.isUnsureOfLinks.contains(.file(layer: layer, index: index)) {
        note(path, "links", UInt64(links[layer][index] ?? 0), status.links)
      }
      note(path, "mtime", metadata.modified, status.modified)
      compareIdentity(.file(layer: layer, index: index), status, at: path)
    case .directory(let model):
      note(path, "type", .directory, status.kind)
      if judge == .bundlefs {
        note(path, "links", 1, status.links)
        note(path, "mtime", model.modified, status.modified)
      }
      compareIdentity(.directory(model.path), status, at: path)
    }
    try compareAttributes(entry, metadata, at: path)
    return status
  }

  private mutating func compareIdentity(
    _ identity: Identity, _ status: StatResult, at path: ByteString
  ) {
    guard judge == .bundlefs else { return }
    if let other = inodes.updateValue(identity, forKey: status.inode), other != identity {
      note(path, "st_ino \(status.inode) is only of", "\(identity)", "\(other) too")
    }
    if let other = identities.updateValue(status.inode, forKey: identity) {
      note(path, "st_ino of another link", other, status.inode)
    }
  }

  private mutating func compareInside(_ entry: MergedEntry, at path: ByteString) throws {
    switch entry {
    case .directory(let model): try compareDirectory(model, at: path)
    case .file(let layer, let index):
      switch stack[layer].files[index].form {
      case .regular(let content): compareContent(content, try path.read(), at: path)
      case .link(let target): note(path, "target", target, try path.linkTarget())
      default: break
      }
    }
  }

  private mutating func compareContent(_ expected: [UInt8], _ seen: [UInt8], at path: ByteString) {
    if expected == seen { return }
    let place = zip(expected, seen).enumerated().first { $0.element.0 != $0.element.1 }?.offset
    note(
      path, "content", "\(expected.count) bytes",
      "\(seen.count) bytes, the first other at \(place ?? min(expected.count, seen.count))")
  }

  /// The planned attributes and no other of the `user.` ones but those that mark or explain.
  private mutating func compareAttributes(
    _ entry: MergedEntry, _ metadata: PlannedMetadata, at path: ByteString
  ) throws {
    let shown = try path.attributeNames().filter {
      $0.hasPrefix("user.") && !$0.hasPrefix("user.overlay.") && !$0.hasPrefix("user.bundlefs.")
        && ($0 != "user.mime_type" || metadata.attributes[$0] != nil)
    }
    note(path, "xattr names", metadata.attributes.keys.sorted(), shown.sorted())
    for (name, value) in metadata.attributes where shown.contains(name) {
      note(path, "xattr \(name)", value, try path.attribute(name))
    }
  }

  private func metadata(of entry: MergedEntry) -> PlannedMetadata {
    switch entry {
    case .file(let layer, let index): stack[layer].files[index].metadata
    case .directory(let model): model.parts[0].directory.metadata
    }
  }

  private mutating func guarded(_ path: ByteString, _ body: (inout TreeComparison) throws -> Void) {
    do { try body(&self) } catch { note(path, "reachable", "yes", "\(error)") }
  }

  private mutating func note<Value: Equatable>(
    _ path: ByteString, _ subject: String, _ expected: Value, _ seen: Value
  ) {
    if expected == seen { return }
    differences.append("\(path): \(subject): expected \(expected), seen \(seen)")
  }

  private mutating func note(_ path: ByteString, _ subject: String, _ expected: String, _ seen: [ByteString])
  {
    note(path, subject, expected, "\(seen)")
  }
}

extension PlannedDirectory {
  /// All names in it and below.
  var allNames: Set<ByteString> {
    entries.reduce(into: Set(entries.keys)) { names, entry in
      if case .directory(let inner) = entry.value { names.formUnion(inner.allNames) }
    }
  }
}
