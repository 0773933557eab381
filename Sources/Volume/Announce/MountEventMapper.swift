import Fuse
import Layers
import Posix

/// An event that programs which watch the mount have to receive.
enum MountEvent: Hashable {
  case name(EntryKey, EventClassifier.Event)
  case renaming(EntryKey, to: EntryKey)
  case directory(NodeID)
}

/// Maps changes in the layers to the events that they are in the merged view.
struct MountEventMapper: Sendable {
  let store: NodeStore
  let reserved: ReservedNames

  /// The events for a change; none for directories that the kernel does not know, which no program can watch.
  func events(for item: CoalescingEventQueue.Item) -> [MountEvent] {
    switch item {
    case .directory(let directory): return isKnown(directory) ? [.directory(directory)] : []
    case .name(let key, let change): return events(for: change, at: key)
    case .renaming(let source, let from, let target, let to):
      if isVisibleRename(source, from, target, to) { return [.renaming(source, to: target)] }
      return events(for: from, at: source) + events(for: to, at: target)
    }
  }

  private func events(for change: NameChange, at key: EntryKey) -> [MountEvent] {
    guard isKnown(key.parent), let view = try? view(of: key, change) else { return [] }
    if view.after == .nothing, change.aspects.contains(.added) {
      // What was added is a whiteout, or is gone again.
      store.record(change.layers.map { Listing.Whiteout(name: key.name, layer: $0) }, in: key.parent)
    }
    let events = EventClassifier.events(
      for: change, after: view.after, others: view.others, isHidden: view.isHidden)
    // A directory's own change and that of its entry in the parent are one event.
    if view.after == .directory, events == [.attributes],
      let child = store.childDirectory(named: key.name, in: key.parent)
    {
      return isKnown(child) ? [.directory(child)] : [.name(key, .attributes)]
    }
    return events.map { .name(key, $0) }
  }

  /// Whether a file that was renamed in a layer was visible by its old name and is visible by its new one only.
  private func isVisibleRename(
    _ source: EntryKey, _ from: NameChange, _ target: EntryKey, _ to: NameChange
  ) -> Bool {
    guard isKnown(source.parent), isKnown(target.parent), from.aspects.contains(.removed),
      let old = try? view(of: source, from), old.after == .nothing, !old.isHidden,
      let new = try? view(of: target, to), case .file(let layer, _) = new.after
    else { return false }
    return to.aspects.contains(.added) && to.layers.contains(layer) && from.layers.contains(layer)
  }

  /// The file that a name refers to now, the one that it would refer to without the layers in which it changed, and whether a
  /// whiteout of another layer hides the change.
  private func view(
    of key: EntryKey, _ change: NameChange
  ) throws(Errno) -> (after: EventClassifier.Presence, others: EventClassifier.Presence, isHidden: Bool) {
    let merged = try store.merged(of: key.parent)
    return try withCName(key.name) { name throws(Errno) in
      if key.parent == .root, reserved.contains(name) { throw .noSuchFileOrDirectory }
      let found = try merged.lookup(name)
      var after = EventClassifier.Presence(found)
      let others = EventClassifier.Presence(try merged.lookup(name, without: change.layers))
      // The option `hide` hides the name in all layers.
      if merged.top.conceals(name) { return (.nothing, .nothing, true) }
      var isHidden = true
      for layer in change.layers where isHidden { isHidden = try merged.hides(name, ofLayer: layer) }
      // A change below the topmost one changes what they are merged into.
      if !isHidden, case .file(_, .regular) = after, merged.isTable(name) {
        after = .file(layer: .max, .regular)
      }
      return (after, others, isHidden)
    }
  }

  private func isKnown(_ directory: NodeID) -> Bool {
    directory == .root
      || store.table.withLock { table in
        guard let slot = try? table.slot(of: directory) else { return false }
        return table[slot].lookups > 0
      }
  }
}

extension EventClassifier.Presence {
  fileprivate init(_ entry: Entry?) {
    switch entry {
    case nil: self = .nothing
    case .directory: self = .directory
    case .file(let layer, let attributes):
      self = attributes.kind.map { .file(layer: layer, $0) } ?? .nothing
    }
  }
}
