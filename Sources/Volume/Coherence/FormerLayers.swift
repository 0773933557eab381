import Fuse
import Layers
import Posix

/// What a change of the layers has done to names, for programs that watch the mount.
struct FormerLayers {
  private let store: NodeStore
  private let stack: LayerStack

  /// - Returns: nil if the layers are those of the predecessor.
  init?(_ store: NodeStore) {
    guard let stack = store.stack.former else { return nil }
    self.store = store
    self.stack = stack
  }

  /// The changes of a directory.
  /// - Parameter present: the names in its parts.
  func changes(of directory: NodeID, _ present: Set<[UInt8]>) -> [ObservedChange] {
    guard let path = try? store.path(of: directory) else { return [] }
    let (before, after) = (try? stack.directory(at: path), try? store.merged(of: directory))
    let names = present.union((before?.parts ?? []).flatMap(Invalidator.names))
    return names.compactMap { name in
      let states = try? withCName(name) { name throws(Errno) in
        (try before?.lookup(name), try after?.lookup(name))
      }
      guard let states, let aspects = Self.aspects(from: states.0, to: states.1) else { return nil }
      // Whatever layer it comes from: nothing of the former stack hides it.
      let change = NameChange(aspects: aspects, layers: [0])
      return .name(EntryKey(parent: directory, name: name), change)
    }
  }

  /// - Returns: nil if the name stands for the same.
  private static func aspects(from before: Entry?, to after: Entry?) -> Invalidation.Aspects? {
    switch (before, after) {
    case (nil, nil), (.directory, .directory): nil
    case (nil, .some): [.added, .revealed]
    case (.file, nil): [.removed, .knownFile]
    case (.directory, nil): [.removed, .removedDirectory, .knownDirectory]
    case (.file(_, let former), .file(_, let present)):
      former.identity == present.identity ? nil : [.added, .knownFile]
    case (.file, .directory): [.added, .knownFile]
    case (.directory, .file): [.added, .removedDirectory]
    }
  }
}
