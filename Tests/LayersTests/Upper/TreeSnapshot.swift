import Glibc
import Posix
import TestSupport

@testable import Layers

/// What a tree shows: a description of each entry.
typealias TreeSnapshot = [ByteString: String]

enum Snapshots {
  /// The entries below a directory.
  static func of(_ root: ByteString) throws -> TreeSnapshot {
    var snapshot: TreeSnapshot = [:]
    try add(root, "", to: &snapshot)
    return snapshot
  }

  private static func add(_ directory: ByteString, _ path: ByteString, to snapshot: inout TreeSnapshot) throws
  {
    for name in try directory.names() {
      // Overlayfs lists whiteouts of directories that are not merged.
      guard (directory / name).exists else { continue }
      snapshot[path / name] = try description(of: directory / name)
      if try (directory / name).status().kind == .directory {
        try add(directory / name, path / name, to: &snapshot)
      }
    }
  }

  /// The entries of the merged view.
  static func of(_ tree: UpperTree) throws -> TreeSnapshot {
    var snapshot: TreeSnapshot = [:]
    try add(tree.stack.root(), "", of: tree, to: &snapshot)
    return snapshot
  }

  private static func add(
    _ directory: MergedDirectory, _ path: ByteString, of tree: UpperTree, to snapshot: inout TreeSnapshot
  ) throws {
    let listing = try directory.list()
    for item in listing.items {
      let name = ByteString(listing.name(of: item))
      let entry = try withCName(name.bytes) { name throws(Errno) in try directory.lookup(name) }
      switch entry {
      case nil: snapshot[path / name] = "listed, but not found"
      case .file(let layer, _):
        snapshot[path / name] = try description(of: tree.paths[layer] / path / name)
      case .directory(let next, _):
        snapshot[path / name] = try description(of: tree.paths[next.top.layer] / path / name)
        try add(next, path / name, of: tree, to: &snapshot)
      }
    }
  }

  /// Kind, permissions, owner, content, time of a non-directory, and extended attributes.
  static func description(of path: ByteString) throws -> String {
    let status = try path.status()
    var parts = [
      "\(status.kind.map { "\($0)" } ?? "unknown")", String(status.permissions, radix: 8),
      "\(status.owner):\(status.group)",
    ]
    switch status.kind {
    case .regular: parts.append("\(status.size) bytes, \(hash(try path.read()))")
    case .symbolicLink: parts.append(try path.linkTarget().description)
    case .characterDevice, .blockDevice: parts.append("\(status.rdev)")
    default: break
    }
    if status.kind != .directory { parts.append("\(status.modified.seconds).\(status.modified.nanoseconds)") }
    for name in try path.attributeNames().sorted() where !name.text.contains(".overlay.") {
      parts.append("\(name)=\(ByteString(try path.attribute(name)))")
    }
    return parts.joined(separator: " ")
  }

  private static func hash(_ bytes: [UInt8]) -> UInt64 {
    bytes.reduce(14_695_981_039_346_656_037) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
  }

  /// The entries that differ, one line each.
  static func differences(_ expected: TreeSnapshot, _ found: TreeSnapshot) -> [String] {
    Set(expected.keys).union(found.keys).sorted().compactMap { path in
      expected[path] == found[path]
        ? nil : "\(path): expected \(expected[path] ?? "nothing"), found \(found[path] ?? "nothing")"
    }
  }
}
