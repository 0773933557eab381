import Glibc
import Posix
import TestSupport

/// Watches every directory of a mount, and knows from the model which changes must have been heard.
final class WatcherOracle {
  private typealias Path = [ByteString]

  /// What can be seen of an entry, and so can change.
  private enum Sight: Equatable {
    /// The time of a directory changes with its entries, of which watchers are told.
    case directory(permissions: UInt32, owner: UInt32, attributes: [ByteString: [UInt8]])
    case file(PlannedForm, PlannedMetadata, layer: Int, hasLinks: Bool)

    var isDirectory: Bool { if case .directory = self { true } else { false } }
    /// Its content may change by another name, of which those who watch this one are not told anywhere.
    var hasLinks: Bool { if case .file(_, _, _, let hasLinks) = self { hasLinks } else { false } }
  }

  private let watcher: MountWatcher
  private var before: [Path: Sight] = [:]

  init(_ point: ByteString) throws { watcher = try MountWatcher(point, []) }

  /// Listens in every directory that there is now.
  func listen(_ stack: [PlannedLayer]) throws {
    before = Self.sights(stack)
    for (path, sight) in before where sight.isDirectory { try watcher.watch(Self.joined(path)) }
    try watcher.forget()
  }

  /// The changes since then that nobody was told of.
  func missed(_ stack: [PlannedLayer]) throws -> [String] {
    let after = Self.sights(stack)
    var missing = changed(after)
    _ = try eventually(within: 10) {
      try watcher.hear()
      missing = missing.filter { !isHeard($0) }
      return missing.isEmpty
    }
    return missing.map { "nothing was heard of \(words($0)), heard: \(watcher.events.suffix(30))" }
  }

  private func isHeard(_ path: Path) -> Bool {
    let (directory, name) = (Self.joined(path.dropLast()), path.last ?? "")
    let above = Self.joined(path.dropLast(2))
    return watcher.events.contains { event in
      event.mask != InotifyEvent.Mask(rawValue: UInt32(IN_OPEN))
        && ((event.directory == directory && (event.name == name || event.name == ""))
          || (path.count > 1 && event.directory == above && event.name == path[path.count - 2]))
    }
  }

  /// What is another thing than before, but for what is inside of a directory that came or went: whoever sees
  /// that looks for himself.
  private func changed(_ after: [Path: Sight]) -> [Path] {
    Set(before.keys).union(after.keys).filter { path in
      let (old, new) = (before[path], after[path])
      if path.isEmpty || old == new || old?.hasLinks == true || new?.hasLinks == true { return false }
      return (1..<path.count).allSatisfy { count in
        let above = Path(path.prefix(count))
        return before[above]?.isDirectory == true && after[above]?.isDirectory == true
      }
    }
  }

  private static func sights(_ stack: [PlannedLayer]) -> [Path: Sight] {
    let links = stack.map(\.links)
    var found: [Path: Sight] = [:]
    var waiting: [(Path, MergedDirectory)] = [([], MergedDirectory.root(of: stack))]
    while let (path, directory) = waiting.popLast() {
      if let metadata = directory.parts.first?.directory.metadata {
        found[path] = .directory(
          permissions: metadata.permissions, owner: metadata.owner, attributes: metadata.attributes)
      }
      for name in directory.names {
        switch directory.lookup(name) {
        case .directory(let inner): waiting.append((path + [name], inner))
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
