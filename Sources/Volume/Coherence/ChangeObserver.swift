import Fuse

/// What happened to a name since it was last announced.
struct NameChange: Equatable {
  /// Those in `announced` count.
  var aspects: Invalidation.Aspects
  var layers: Set<Int>

  mutating func merge(_ other: NameChange) {
    aspects.formUnion(other.aspects)
    layers.formUnion(other.layers)
  }
}

/// A change that the invalidator has handled.
enum ObservedChange {
  case name(EntryKey, NameChange)
  case renaming(EntryKey, to: EntryKey)
  case directory(NodeID)
}

/// Receives the changes that the invalidator has handled. `Announcer` is the one that a mount has.
protocol ChangeObserver: Sendable {
  /// Records a change, to be published by `flush`.
  func record(_ change: ObservedChange)
  /// Publishes the recorded changes, whose invalidations have all been sent to the kernel.
  func flush()
}
