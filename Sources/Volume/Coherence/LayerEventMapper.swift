import Fuse
import Layers
import Posix

/// An event in a layer's directory, as inotify(7) reports it.
struct LayerEvent {
  let directory: NodeID
  let layer: Int
  /// The entry; empty for the part itself.
  let name: [UInt8]
  let mask: InotifyEvent.Mask
}

/// Maps the events of the layers to the invalidations that they need. It reads no layer and sends nothing to the
/// kernel.
enum LayerEventMapper {
  /// Detaches the files that lost their names in the table.
  static func invalidations(for event: LayerEvent, in table: inout NodeTable) -> [Invalidation] {
    let found = ownInvalidations(for: event, in: &table)
    return table.mergesTables ? found + tableInvalidations(for: event, in: &table) : found
  }

  /// Those of the directory in which the event was, and of those below that it replaces.
  private static func ownInvalidations(
    for event: LayerEvent, in table: inout NodeTable
  ) -> [Invalidation] {
    guard let slot = try? table.slot(of: event.directory), let state = table[slot].directory else {
      return []
    }
    state.version += 1
    if !event.mask.isDisjoint(with: .names) {
      for part in state.merged?.parts(of: event.layer) ?? [] { part.recordNameChange() }
    }
    // Nothing is cached. A request that is about to cache something compares the version first.
    if state.parts == nil { return [] }
    if event.name.isEmpty { return ofPart(event) }
    if event.name == UpperLayer.workFolderName { return [] }
    if !WhiteoutMarker.isMarker(event.name) { return ofEntry(event, slot, &table) }
    let listing = Invalidation(subject: .listing(event.directory))
    if WhiteoutMarker.isOpaque(event.name) {
      return [Invalidation(subject: .parts(event.directory)), listing]
    }
    let hidden = WhiteoutMarker.name(hiddenBy: event.name)
    let isRemoved = event.mask.isDisjoint(with: [.created, .movedTo])
    return ofName(hidden, event, slot, &table, isRemoved ? .revealed : .added)
      + [named(event.name, event, .link), listing]
  }

  /// The invalidations of the tables to which a catalog contributes that has changed, or may hide or reveal others. They
  /// are in the folders of languages beside it, in some of which its layer takes no part.
  private static func tableInvalidations(for event: LayerEvent, in table: inout NodeTable) -> [Invalidation] {
    let catalog = WhiteoutMarker.name(concernedBy: event.name)
    guard let name = TableName.table(ofCatalog: catalog, foldsNames: table.foldsNames),
      let slot = try? table.slot(of: event.directory), table[slot].directory?.parts != nil
    else { return [] }
    let isReplaced = WhiteoutMarker.isMarker(event.name) || !event.mask.isDisjoint(with: .names)
    let aspects = isReplaced ? Invalidation.Aspects.ofTable : content(event.mask).union(.entry)
    return table.languageFolders(in: slot).map { folder in
      // A listing or a lookup in it may be in preparation.
      table[folder].directory?.version += 1
      return Invalidation(tables: name, in: table.number(of: folder), aspects: aspects)
    }
  }

  /// The part itself: its attributes, among them the opaque xattr.
  private static func ofPart(_ event: LayerEvent) -> [Invalidation] {
    guard event.mask.contains(.attributes) else { return [] }
    return [
      Invalidation(subject: .parts(event.directory), aspects: event.directory == .root ? .attributes : []),
      Invalidation(subject: .listing(event.directory)),
    ]
  }

  private static func ofEntry(_ event: LayerEvent, _ slot: UInt32, _ table: inout NodeTable)
    -> [Invalidation]
  {
    if !event.mask.isDisjoint(with: .names) {
      let presence = presence(event, &table, slot)
      let found = ofName(event.name, event, slot, &table, presence)
      detach(event, slot, &table)
      return found + [Invalidation(subject: .listing(event.directory))]
    }
    if event.mask.contains(.isDirectory) {
      // The child's opaque xattr is one of its attributes too.
      let entry = named(event.name, event, [.entry, .attributes])
      let children = table.directories(named: event.name, in: slot).map { table.number(of: $0) }
      return [entry]
        + children.flatMap { [Invalidation(subject: .parts($0)), Invalidation(subject: .listing($0))] }
    }
    return [named(event.name, event, content(event.mask).union(.entry))]
  }

  /// The name refers to another file or to none, and its former file has another link count.
  /// - Parameter presence: the aspect for watchers of the mount.
  private static func ofName(
    _ name: [UInt8], _ event: LayerEvent, _ slot: UInt32, _ table: inout NodeTable,
    _ presence: Invalidation.Aspects
  ) -> [Invalidation] {
    var aspects: Invalidation.Aspects = [.entry, .attributes, presence]
    if event.mask.contains(.created), !event.mask.contains(.isDirectory) { aspects.insert(.link) }
    // A file that is detached loses its other spellings.
    var others = table.keepSpellings(of: name, in: slot).map { Invalidation(subject: .spelling($0)) }
    for child in table.directories(named: name, in: slot) {
      aspects.insert(.knownDirectory)
      others.append(Invalidation(subject: .parts(table.number(of: child))))
    }
    for node in table.nodes(named: name, in: slot) where table[node].directory == nil {
      aspects.insert(.knownFile)
      others.append(Invalidation(subject: .file(table.number(of: node)), aspects: .attributes))
    }
    return [named(name, event, aspects)] + others
  }

  private static func content(_ mask: InotifyEvent.Mask) -> Invalidation.Aspects {
    if mask.contains(.closeWrite) { return [.content, .closed] }
    return mask.contains(.modified) ? [.content, .modified] : .attributes
  }

  /// The presence of a name that is no marker; a known whiteout of that name is gone.
  private static func presence(
    _ event: LayerEvent, _ table: inout NodeTable, _ slot: UInt32
  ) -> Invalidation.Aspects {
    let aspects = presence(event.mask)
    let whiteout = Listing.Whiteout(name: event.name, layer: event.layer)
    guard let state = table[slot].directory, state.whiteouts?.remove(whiteout) != nil else { return aspects }
    return aspects.subtracting([.removed, .removedDirectory]).union(.revealed)
  }

  private static func presence(_ mask: InotifyEvent.Mask) -> Invalidation.Aspects {
    if !mask.isDisjoint(with: [.deleted, .movedFrom]) {
      return mask.contains(.isDirectory) ? [.removed, .removedDirectory] : .removed
    }
    return mask.contains(.created) ? [.added, .incomplete] : .added
  }

  private static func named(
    _ name: [UInt8], _ event: LayerEvent, _ aspects: Invalidation.Aspects
  ) -> Invalidation {
    Invalidation(subject: .name(event.directory, name, layer: event.layer), aspects: aspects)
  }

  private static func detach(_ event: LayerEvent, _ slot: UInt32, _ table: inout NodeTable) {
    // After IN_CREATE, a node that is known by the name is the new file's.
    if event.mask.contains(.created) { return }
    for node in table.nodes(named: event.name, in: slot)
    where table[node].directory == nil && Int(table[node].layer) == event.layer {
      table.detach(node, from: event.name, in: slot)
    }
  }
}
