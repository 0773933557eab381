import Glibc
import Posix
import TestSupport

/// Watches every directory of a mount and derives from the model which changes must cause an inotify event.
final class WatcherOracle {
  private typealias Path = [ByteString]

  /// The visible state of an entry.
  private enum VisibleState: Equatable {
    /// Without mtime: it changes with the entries, each of which has an event of its own.
    case directory(permissions: UInt32, owner: UInt32, attributes: [ByteString: [UInt8]])
    case file(PlannedForm, PlannedMetadata, layer: Int, hasLinks: Bool)

    var isDirectory: Bool { if case .directory = self { true } else { false } }
    /// Whether the content can change under another name, which causes no event under this one.
    var hasLinks: Bool { if case .file(_, _, _, let hasLinks) = self { hasLinks } else { false } }
  }

  private let watcher: MountWatcher
  private var before: [Path: VisibleState] = [:]

  init(_ point: ByteString) throws { watcher = try MountWatcher(point, []) }

  /// Watches every directory of the current stack and records its state.
  func watchAll(_ stack: [PlannedLayer]) throws {
    before = Self.states(of: stack)
    for (path, state) in before where state.isDirectory { try watcher.watch(Self.joined(path)) }
    try watcher.discardEvents()
  }

  /// The changes since `watchAll(_:)` that caused no event within 10 seconds.
  func missedChanges(_ stack: [PlannedLayer]) throws -> [String] {
    let after = Self.states(of: stack)
    var missing = changed(after)
    _ = try eventually(within: 10) {
      try watcher.readEvents()
      missing = missing.filter { !hasEvent($0) }
      return missing.isEmpty
    }
    return missing.map { "no event for \(words($0)); last events: \(watcher.events.suffix(30))" }
  }

  private func hasEvent(_ path: Path) -> Bool {
    let (directory, name) = (Self.joined(path.dropLast()), path.last ?? "")
    let above = Self.joined(path.dropLast(2))
    return watcher.events.contains { event in
      event.mask != InotifyEvent.Mask(rawValue: UInt32(IN_OPEN))
        && ((event.directory == directory && (event.name == name || event.name == ""))
          || (path.count > 1 && event.directory == above && event.name == path[path.count - 2]))
    }
  }

  /// The paths whose state differs, except those inside a directory that itself appeared or vanished: a watcher
  /// that receives that event lists the directory.
  private func changed(_ after: [Path: VisibleState]) -> [Path] {
    Set(before.keys).union(after.keys).filter { path in
      let (old, new) = (before[path], after[path])
      if path.isEmpty || old == new || old?.hasLinks == true || new?.hasLinks == true { return false }
      return (1..<path.count).allSatisfy { count in
        let above = Path(path.prefix(count))
        return before[above]?.isDirectory == true && after[above]?.isDirectory == true
      }
    }
  }

  private static func states(of stack: [PlannedLayer]) -> [Path: VisibleState] {
    let links = stack.map(\.links)
    var found: [Path: VisibleState] = [:]
    var pending: [(Path, MergedDirectory)] = [([], MergedDirectory.root(of: stack))]
    while let (path, directory) = pending.popLast() {
      if let metadata = directory.parts.first?.directory.metadata {
        found[path] = .directory(
          permissions: metadata.permissions, owner: metadata.owner, attributes: metadata.attributes)
      }
      for name in directory.names {
        switch directory.lookup(name) {
        case .directory(let inner): pending.append((path + [name], inner))
        case .file(let layer, let index):
          let file = stack[layer].files[index]
          found[path + [name]] = .file(
            file.form, file.metadata, layer: layer, hasLinks: (links[layer][index] ?? 1) > 1)
        case nil: break
        }
      }
    }
    return found
  }

  private static func joined(_ path: some Sequence<ByteString>) -> ByteString {
    path.reduce("" as ByteString) { $0.bytes.isEmpty ? $1 : $0 / $1 }
  }
}
