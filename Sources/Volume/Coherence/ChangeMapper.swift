import Fuse
import Layers
import Posix

/// A change in a layer's directory, as an inotify event reported it.
struct LayerChange {
  let directory: NodeID
  let layer: Int
  /// The entry; empty for the part itself.
  let name: [UInt8]
  let mask: InotifyEvent.Mask
}

/// Maps changes in the layers to the invalidations that they need. It reads no layer and sends nothing to the
/// kernel.
enum ChangeMapper {
  /// Detaches the files that lost their names in the table.
  static func invalidations(for change: LayerChange, in table: inout NodeTable) -> [Invalidation] {
    guard let slot = try? table.slot(of: change.directory), let state = table[slot].directory else {
      return []
    }
    state.version += 1
    if !change.mask.isDisjoint(with: .names) { state.merged?.part(of: change.layer)?.recordNameChange() }
    // Nothing is cached. A request that is about to cache something compares the version first.
    if state.parts == nil { return [] }
    if change.name.isEmpty { return ofPart(change) }
    if change.name == UpperLayer.workFolderName { return [] }
    if !WhiteoutMarker.isMarker(change.name) { return ofEntry(change, slot, &table) }
    let listing = Invalidation(subject: .listing(change.directory))
    if WhiteoutMarker.isOpaque(change.name) {
      return [Invalidation(subject: .parts(change.directory)), listing]
    }
    let hidden = WhiteoutMarker.name(hiddenBy: change.name)
    let isRemoved = change.mask.isDisjoint(with: [.created, .movedTo])
    return ofName(hidden, change, slot, &table, isRemoved ? .revealed : .added)
      + [named(change.name, change, .link), listing]
  }

  /// The part itself: its attributes, among them the opaque xattr.
  private static func ofPart(_ change: LayerChange) -> [Invalidation] {
    guard change.mask.contains(.attributes) else { return [] }
    return [
      Invalidation(subject: .parts(change.directory), aspects: change.directory == .root ? .attributes : []),
      Invalidation(subject: .listing(change.directory)),
    ]
  }

  private static func ofEntry(_ change: LayerChange, _ slot: UInt32, _ table: inout NodeTable)
    -> [Invalidation]
  {
    if !change.mask.isDisjoint(with: .names) {
      let presence = presence(change, &table, slot)
      let found = ofName(change.name, change, slot, &table, presence)
      detach(change, slot, &table)
      return found + [Invalidation(subject: .listing(change.directory))]
    }
    if change.mask.contains(.isDirectory) {
      // The child's opaque xattr is one of its attributes too.
      let entry = named(change.name, change, [.entry, .attributes])
      let children = table.directories(named: change.name, in: slot).map { table.number(of: $0) }
      return [entry]
        + children.flatMap { [Invalidation(subject: .parts($0)), Invalidation(subject: .listing($0))] }
    }
    return [named(change.name, change, content(change.mask).union(.entry))]
  }

  /// The name stands for something else or for nothing, and the file that it stood for has another link count.
  /// - Parameter presence: the aspect for watchers of the mount.
  private static func ofName(
    _ name: [UInt8], _ change: LayerChange, _ slot: UInt32, _ table: inout NodeTable,
    _ presence: Invalidation.Aspects
  ) -> [Invalidation] {
    var aspects: Invalidation.Aspects = [.entry, .attributes, presence]
    if change.mask.contains(.created), !change.mask.contains(.isDirectory) { aspects.insert(.link) }
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
    return [named(name, change, aspects)] + others
  }

  private static func content(_ mask: InotifyEvent.Mask) -> Invalidation.Aspects {
    if mask.contains(.closeWrite) { return [.content, .closed] }
    return mask.contains(.modified) ? [.content, .modified] : .attributes
  }

  /// The presence of a name that is no marker; a known whiteout of that name is gone.
  private static func presence(
    _ change: LayerChange, _ table: inout NodeTable, _ slot: UInt32
  ) -> Invalidation.Aspects {
    let aspects = presence(change.mask)
    let whiteout = Listing.Whiteout(name: change.name, layer: change.layer)
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
    _ name: [UInt8], _ change: LayerChange, _ aspects: Invalidation.Aspects
  ) -> Invalidation {
    Invalidation(subject: .name(change.directory, name, layer: change.layer), aspects: aspects)
  }

  private static func detach(_ change: LayerChange, _ slot: UInt32, _ table: inout NodeTable) {
    // After IN_CREATE, a node that is known by the name is the new file's.
    if change.mask.contains(.created) { return }
    for node in table.nodes(named: change.name, in: slot)
    where table[node].directory == nil && Int(table[node].layer) == change.layer {
      table.detach(node, from: change.name, in: slot)
    }
  }
}
