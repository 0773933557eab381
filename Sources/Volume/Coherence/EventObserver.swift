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

/// An event of a layer whose invalidations were sent to the kernel.
enum ObservedEvent {
  case name(EntryKey, NameChange)
  case renaming(EntryKey, to: EntryKey)
  case directory(NodeID)
}

/// Receives the events that the invalidator has handled. A mount has one, its `Announcer`.
protocol EventObserver: Sendable {
  /// Records an event, to be published by `flush`.
  func record(_ event: ObservedEvent)
  /// Publishes the recorded events, whose invalidations have all been sent to the kernel.
  func flush()
}
