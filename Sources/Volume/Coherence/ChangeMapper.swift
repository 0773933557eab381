import Fuse
import Posix

/// Something that happened in a layer's directory, as a watch told it.
struct LayerChange {
  /// The node of the directory.
  let directory: NodeID
  /// The layer of the directory's part in which it happened.
  let layer: Int
  /// The entry; empty for the part itself.
  let name: [UInt8]
  let mask: InotifyEvent.Mask
}

/// What has to be taken back from the kernel, and looked at again by us.
struct Invalidation: Hashable {
  /// What of a name.
  struct Aspects: OptionSet, Hashable {
    let rawValue: UInt16
    /// For what it stands.
    static let entry = Aspects(rawValue: 1)
    /// The attributes of what it stands for.
    static let attributes = Aspects(rawValue: 2)
    /// The content of what it stands for, with the attributes.
    static let content = Aspects(rawValue: 4)
    /// That it may be another name of a file that is known by one already.
    static let link = Aspects(rawValue: 8)

    // What watchers of the mount want to know beside that.

    /// That the layer has it since then: it was made there, or moved there.
    static let came = Aspects(rawValue: 16)
    /// That the layer has it no more.
    static let went = Aspects(rawValue: 32)
    /// That what went was a directory.
    static let wentDirectory = Aspects(rawValue: 64)
    /// That a mark went which hid it.
    static let uncovered = Aspects(rawValue: 128)
    /// That the kernel may have known it: as a directory, or as something else.
    static let knownDirectory = Aspects(rawValue: 256)
    static let knownFile = Aspects(rawValue: 512)
    /// That it was made there, and maybe is still being written.
    static let begun = Aspects(rawValue: 1024)
    /// That it was written to; that whoever wrote to it is done.
    static let modified = Aspects(rawValue: 2048)
    static let closed = Aspects(rawValue: 4096)
    /// All of which watchers are told.
    static let news: Aspects = [.attributes, .modified, .closed, .came, .went, .uncovered]
  }
  enum Subject: Hashable {
    /// A name of a directory. A file's attributes and content are taken back only where it is this layer's.
    case name(NodeID, [UInt8], layer: Int)
    /// A directory's listing and attributes.
    case listing(NodeID)
    /// A file itself, by whatever name.
    case file(NodeID)
    /// A directory may consist of other parts by now.
    case parts(NodeID)
    /// A directory and all below may be anything by now.
    case subtree(NodeID)
    /// Nothing beyond what is taken back already: a file went from one name to another.
    case renamed(EntryKey, to: EntryKey)
  }
  let subject: Subject
  var aspects: Aspects = []
}

/// From changes in the layers to what they make untrue. Nothing here reads a layer or speaks to the kernel.
enum ChangeMapper {
  private static let markPrefix = Array(".wh.".utf8)
  private static let opaqueMark = Array(".wh..wh..opq".utf8)

  /// What a change makes untrue. Also notes in the table that files left their names.
  static func invalidations(for change: LayerChange, in table: inout NodeTable) -> [Invalidation] {
    guard let slot = try? table.slot(of: change.directory), let state = table[slot].directory else {
      return []
    }
    state.version += 1
    // Nothing is cached; but somebody may be about to, and will see the version.
    if state.parts == nil { return [] }
    if change.name.isEmpty { return ofPart(change) }
    if !change.name.starts(with: markPrefix) { return ofEntry(change, slot, &table) }
    let listing = Invalidation(subject: .listing(change.directory))
    if change.name == opaqueMark { return [Invalidation(subject: .parts(change.directory)), listing] }
    // The mark changes what is seen of the name that it hides.
    let hidden = Array(change.name.dropFirst(markPrefix.count))
    let isGone = change.mask.isDisjoint(with: [.created, .movedTo])
    return ofName(hidden, change, slot, table, isGone ? .uncovered : .came)
      + [named(change.name, change, .link), listing]
  }

  /// The part itself: its attributes, an opaque mark among them.
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
      let found = ofName(change.name, change, slot, table, news(of: change.mask))
      detach(change, slot, &table)
      return found + [Invalidation(subject: .listing(change.directory))]
    }
    let child = table.directory(change.name, in: slot)
    if change.mask.contains(.isDirectory) {
      // An opaque mark of the child is an attribute, too.
      let entry = named(change.name, change, [.entry, .attributes])
      return child == 0
        ? [entry]
        : [
          entry, Invalidation(subject: .parts(table.number(of: child))),
          Invalidation(subject: .listing(table.number(of: child))),
        ]
    }
    return [named(change.name, change, content(change.mask).union(.entry))]
  }

  /// The name stands for something else, or for nothing; the file that it stood for has another link count.
  /// - Parameter news: what watchers are told of it.
  private static func ofName(
    _ name: [UInt8], _ change: LayerChange, _ slot: UInt32, _ table: NodeTable, _ news: Invalidation.Aspects
  ) -> [Invalidation] {
    let isNew = change.mask.contains(.created) && !change.mask.contains(.isDirectory)
    var aspects: Invalidation.Aspects = [.entry, .attributes, news]
    if isNew { aspects.insert(.link) }
    var others: [Invalidation] = []
    let child = table.directory(name, in: slot)
    if child != 0 {
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

  private static func news(of mask: InotifyEvent.Mask) -> Invalidation.Aspects {
    if !mask.isDisjoint(with: [.deleted, .movedFrom]) {
      return mask.contains(.isDirectory) ? [.went, .wentDirectory] : .went
    }
    return mask.contains(.created) ? [.came, .begun] : .came
  }

  private static func named(
    _ name: [UInt8], _ change: LayerChange, _ aspects: Invalidation.Aspects
  ) -> Invalidation {
    Invalidation(subject: .name(change.directory, name, layer: change.layer), aspects: aspects)
  }

  private static func detach(_ change: LayerChange, _ slot: UInt32, _ table: inout NodeTable) {
    // Nothing had the name before: who is known by it now is the new one.
    if change.mask.contains(.created) { return }
    for node in table.nodes(named: change.name, in: slot)
    where table[node].directory == nil && Int(table[node].layer) == change.layer {
      table.detach(node, from: change.name, in: slot)
    }
  }
}
