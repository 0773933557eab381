import Fuse
import Layers
import Posix

/// An event that watchers of the mount are to have.
enum DueEvent: Hashable {
  case name(EntryKey, EventClassifier.Event)
  case renaming(EntryKey, to: EntryKey)
  case directory(NodeID)
}

/// From what happened in the layers to what watchers of the mount are owed for it.
extension Volume {
  /// The events for something that happened. None for directories that the kernel does not know: nobody watches
  /// them.
  func dueEvents(_ item: CoalescingEventQueue.Item) -> [DueEvent] {
    switch item {
    case .directory(let directory): return isHeld(directory) ? [.directory(directory)] : []
    case .name(let place, let news): return dueEvents(news, at: place)
    case .renaming(let source, let from, let target, let to):
      if isRenamed(source, from, target, to) { return [.renaming(source, to: target)] }
      return dueEvents(from, at: source) + dueEvents(to, at: target)
    }
  }

  private func dueEvents(_ news: NameChange, at place: EntryKey) -> [DueEvent] {
    guard isHeld(place.parent), let sight = try? sight(of: place, news) else { return [] }
    let events = EventClassifier.events(
      for: news, after: sight.after, others: sight.others, isHidden: sight.isHidden)
    // What happens to a directory's attributes may be owed for something else, too.
    if sight.after == .directory, events == [.attributes],
      let child = childDirectory(named: place.name, in: place.parent)
    {
      return isHeld(child) ? [.directory(child)] : [.name(place, .attributes)]
    }
    return events.map { .name(place, $0) }
  }

  /// Whether a file that was renamed in a layer was seen by its old name, and is by its new one alone.
  private func isRenamed(_ source: EntryKey, _ from: NameChange, _ target: EntryKey, _ to: NameChange) -> Bool
  {
    guard isHeld(source.parent), isHeld(target.parent), from.aspects.contains(.went),
      let old = try? sight(of: source, from), old.after == .nothing, !old.isHidden,
      let new = try? sight(of: target, to), case .file(let layer, _) = new.after
    else { return false }
    return to.aspects.contains(.came) && to.layers.contains(layer) && from.layers.contains(layer)
  }

  private func sight(
    of place: EntryKey, _ news: NameChange
  ) throws(Errno) -> (after: EventClassifier.Presence, others: EventClassifier.Presence, isHidden: Bool) {
    let merged = try merged(of: place.parent)
    return try withCName(place.name) { name throws(Errno) in
      // What has these names in a layer is not seen.
      if place.parent == .root, control.isNamed(name) || resources.isFolder(name) {
        throw .noSuchFileOrDirectory
      }
      let after = EventClassifier.Presence(try merged.lookup(name))
      let others = EventClassifier.Presence(try merged.lookup(name, without: news.layers))
      var isHidden = true
      for layer in news.layers where isHidden { isHidden = try merged.hides(name, ofLayer: layer) }
      return (after, others, isHidden)
    }
  }

  /// The files that had a name, as the kernel may still have it, and have it no more.
  func formerFiles(at place: EntryKey) -> [NodeID] {
    guard let merged = try? merged(of: place.parent) else { return [] }
    let found = try? withCName(place.name) { name throws(Errno) in try merged.lookup(name) }
    return table.withLock { table in
      guard let parent = try? table.slot(of: place.parent) else { return [] }
      var present: UInt32 = 0
      if case .file(let layer, let attributes) = found {
        present = table.file(attributes.identity, layer: layer)
      }
      return table.files(lastNamed: place.name, in: parent).filter { $0 != present }
        .map { table.number(of: $0) }
    }
  }

  /// What went with the parts of some layers, as far as the kernel knows it by name.
  func departedNames(
    from directory: NodeID, of layers: Set<Int>
  ) -> [([UInt8], Invalidation.Aspects)] {
    guard !layers.isEmpty, let merged = try? merged(of: directory) else { return [] }
    let known = table.withLock { table -> [([UInt8], isDirectory: Bool)] in
      guard let slot = try? table.slot(of: directory) else { return [] }
      return table.children(of: slot).compactMap { child in
        let isDirectory = table[child].directory != nil
        let isConcerned =
          isDirectory || (layers.contains(Int(table[child].layer)) && !table[child].isDetached)
        return isConcerned ? (table.name(of: child), isDirectory) : nil
      }
    }
    return known.compactMap { name, isDirectory in
      if !isDirectory { return (name, [.went, .knownFile]) }
      // One that is still there has other parts.
      let isThere = (try? withCName(name) { name throws(Errno) in try merged.lookup(name) != nil }) ?? true
      return isThere ? nil : (name, [.went, .wentDirectory, .knownDirectory])
    }
  }

  private func isHeld(_ directory: NodeID) -> Bool {
    directory == .root
      || table.withLock { table in
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
