import Posix
import TestSupport

/// Changes of layers from below, where the mount does not see them made.
struct LayerEdits {
  private let layers: [ByteString]
  private let names: [ByteString]
  /// Whether no directory may get two entries whose names differ in case.
  private let foldsNames: Bool
  private var random: SplitMix64
  /// As `OperationGenerator.setsIDBits`.
  var setsIDBits = true

  init(_ layers: [ByteString], names: [ByteString], foldsNames: Bool = false, random: SplitMix64) {
    (self.layers, self.names, self.foldsNames, self.random) = (layers, names, foldsNames, random)
  }

  /// Makes one change.
  /// - Returns: its description.
  mutating func step() throws -> String {
    let index = random.number(0...layers.count - 1)
    let entries = try Self.entries(of: layers[index])
    let files = entries.filter { $0.kind == .regular }.map(\.path)
    let directories = [layers[index]] + entries.filter { $0.kind == .directory }.map(\.path)
    switch random.number(0...9) {
    case 0..<2 where !files.isEmpty: return try change(random.pick(files))
    case 2..<4 where !files.isEmpty:
      let path = random.pick(files)
      try path.replace(content())
      return "replace \(path)"
    case 4..<6 where !entries.isEmpty:
      let path = random.pick(entries).path
      path.removeTree()
      return "remove \(path)"
    case 6 where !entries.isEmpty:
      let (path, kind) = random.pick(entries)
      if kind != .symbolicLink {
        try path.setMode(UInt32(random.number(0...0o7777)) & (setsIDBits ? 0o7777 : 0o1777))
      }
      return "chmod \(path)"
    default: return try add(to: random.pick(directories))
    }
  }

  private static func entries(of directory: ByteString) throws -> [(path: ByteString, kind: FileKind?)] {
    // No program but the mount changes its work folder.
    try directory.names().filter { $0 != ".wh..wh.bundlefs-work" }.flatMap {
      name -> [(path: ByteString, kind: FileKind?)] in
      let status = try (directory / name).status()
      // A whiteout stays one.
      if status.kind == .characterDevice { return [] }
      let entry = (path: directory / name, kind: status.kind)
      return status.kind == .directory ? [entry] + (try entries(of: entry.path)) : [entry]
    }
  }

  private mutating func change(_ path: ByteString) throws -> String {
    let size = Int(try path.status().size)
    switch random.number(0...2) {
    case 0: try path.overwrite(content(), at: random.number(0...size))
    case 1: try path.setSize(random.number(0...size + 5000))
    default: try path.setAttribute("user.comment", Array("from below \(random.next())".utf8))
    }
    return "change \(path)"
  }

  private mutating func add(to directory: ByteString) throws -> String {
    let path = directory / random.pick(names)
    if path.exists { return "nothing" }
    if foldsNames, (directory / FoldedPaths(root: directory).resolved(path.lastComponent)).exists {
      return "nothing"
    }
    switch random.number(0...5) {
    case 0..<3: try path.write(content())
    case 3: try path.makeDirectory()
    case 4: try path.makeLink(to: "from-below")
    default: try path.makeWhiteout()
    }
    return "add \(path)"
  }

  private mutating func content() -> [UInt8] {
    let byte = UInt8(random.number(0...255))
    return [UInt8](repeating: byte, count: random.pick([0, 1, 100, 4096, 9000]))
  }
}
