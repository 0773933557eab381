import Glibc
import Layers
import Posix
import Routing

/// `bundlefs revert MOUNTPOINT PATH… [--yes]`: removes what the top layer has at paths, so that the layers below show.
struct RevertCommand {
  private struct Item {
    let path: [[UInt8]]
    let name: [UInt8]
    let parent: LayerDirectory
    let entry: UpperEntry
  }

  private let mountPoint: MountPoint
  private let given: [[UInt8]]
  private let isConfirmed: Bool

  init(_ arguments: [[UInt8]]) throws(Failure) {
    let operands = arguments.filter { $0 != Array("--yes".utf8) }
    if let option = operands.first(where: { $0.starts(with: "--".utf8) }) {
      throw .unknownOption(option.shown, of: "revert")
    }
    guard let point = operands.first, operands.count > 1 else {
      throw .usage("'revert' needs a MOUNTPOINT and at least one PATH")
    }
    isConfirmed = operands.count < arguments.count
    if !isConfirmed, isatty(STDIN_FILENO) == 0 {
      throw .failed(
        "revert: standard input is not a terminal; add '--yes' to revert without a question")
    }
    mountPoint = try MountPoint(mounted: point)
    given = Array(operands.dropFirst())
  }

  /// - Returns: the exit status: 1 if something could not be reverted, or the answer is no.
  func run() throws(Failure) -> CInt {
    let layer = try TopLayer(of: mountPoint)
    defer { layer.finish() }
    var items: [Item] = []
    var status: CInt = 0
    for path in try layer.components(of: given, "revert") {
      guard let name = path.last else { throw .usage("'revert' needs a PATH below the MOUNTPOINT") }
      do throws(Failure) {
        items += try self.items(path, name, layer)
      } catch {
        Terminal.printError(error.message)
        status = 1
      }
    }
    if items.isEmpty { return status }
    if !isConfirmed, !Self.confirm(items, layer) { return 1 }
    for item in items where !revert(item, in: layer.upper) { status = 1 }
    return status
  }

  /// What the layer has at a path, in all spellings of the name; nothing if there is nothing to remove.
  private func items(_ path: [[UInt8]], _ name: [UInt8], _ layer: TopLayer) throws(Failure) -> [Item] {
    var progress = ProgressBar(title: "counting:")
    defer { progress.end() }
    let found = try Failure.naming(shown(path)) { () throws(Errno) -> [Item] in
      let folder = Array(path.dropLast())
      var items: [Item] = []
      for (path, parent) in try layer.upper.directories(at: folder, outside: layer.device) {
        for name in try parent.allSpellings(of: name) {
          let entry = try withCName(name) { name throws(Errno) in
            try layer.upper.entry(name, in: parent) { progress.show("\($0) entries") }
          }
          if case .nothing = entry { continue }
          items.append(Item(path: path + [name], name: name, parent: parent, entry: entry))
        }
      }
      return items
    }
    if found.isEmpty {
      if !mountPoint.shows(path) { throw .failed("\(shown(path)): \(Errno.noSuchFileOrDirectory)") }
      Terminal.print("\(shown(path)): nothing to revert in \(layer.path)".escapingControls)
    }
    return found
  }

  private static func confirm(_ items: [Item], _ layer: TopLayer) -> Bool {
    for item in items {
      let kind =
        switch item.entry {
        case .nothing: ""
        case .whiteout: "a whiteout"
        case .file: "a file"
        case .directory(entries: 1): "a directory with 1 entry"
        case .directory(let entries): "a directory with \(entries) entries"
        }
      Terminal.print("  \(shown(item.path)): \(kind)".escapingControls)
    }
    return Terminal.confirm("Remove from \(layer.path)?")
  }

  /// - Returns: false if it failed.
  private func revert(_ item: Item, in upper: UpperLayer) -> Bool {
    do throws(Errno) {
      try withCName(item.name) { name throws(Errno) in
        try upper.revert(name, in: item.parent)
      }
      return true
    } catch {
      // It was removed meanwhile.
      if error == .noSuchFileOrDirectory { return true }
      Terminal.printError("\(shown(item.path)): \(error)")
      return false
    }
  }
}
