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

  /// nil if it cannot be read.
  var root: MergedDirectory? { try? stack.root() }

  /// A directory as the former layers have it now; nil if it is in none.
  func directory(_ directory: NodeID) -> MergedDirectory? {
    guard let path = try? store.path(of: directory) else { return nil }
    return try? stack.directory(at: path)
  }

  /// The names that may refer to another file in a directory that has other parts now: those in the parts that came
  /// or went. nil for all names, since the order of the others has changed.
  static func affectedNames(
    from former: [LayerDirectory], to present: [LayerDirectory]
  ) -> Set<[UInt8]>? {
    let (before, after) = (former.map(PartIdentity.init), present.map(PartIdentity.init))
    let kept = Set(before).intersection(after)
    guard before.filter(kept.contains) == after.filter(kept.contains) else { return nil }
    let changed = (former + present).filter { !kept.contains(PartIdentity($0)) }
    return Set(changed.flatMap(Invalidator.names))
  }

  /// What has changed among some names of a directory.
  func changes(
    of directory: NodeID, from before: MergedDirectory?, _ names: Set<[UInt8]>
  ) -> [ObservedEvent] {
    let after = try? store.merged(of: directory)
    return Set(names.map { store.shownName(of: $0, in: directory) }).compactMap { name in
      let states = try? withCName(name) { name throws(Errno) in
        (try before?.lookup(name), try after?.lookup(name))
      }
      guard let states, let aspects = Self.aspects(from: states.0, to: states.1) else { return nil }
      // Whatever layer it comes from: nothing of the former stack hides it.
      let change = NameChange(aspects: aspects, layers: [0])
      return .name(EntryKey(parent: directory, name: name), change)
    }
  }

  /// - Returns: nil if the name refers to the same file.
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
