import Fuse
import Layers
import Posix

/// The thread that takes back from the kernel what became untrue. It holds no lock while it speaks to the
/// kernel, and answers no requests: the kernel makes it wait for those in flight.
struct Invalidator {
  let volume: Volume
  let kernel: any KernelNotifier

  /// A name that no entry has: taking it back only waits for the requests in flight in the directory.
  private static let nobody: [UInt8] = [UInt8(ascii: ".")]

  func run() {
    while let work = volume.queue.take() {
      for item in work {
        switch item {
        case .invalidate(let invalidation): carryOut(invalidation)
        case .barrier(let reached): reached()
        }
      }
      volume.announcer?.tellNotes()
    }
  }

  func carryOut(_ invalidation: Invalidation) {
    switch invalidation.subject {
    case .name(let directory, let name, let layer):
      takeBack(name, of: directory, layer, invalidation.aspects)
      announce(name, of: directory, [layer], invalidation.aspects)
    case .listing(let directory): takeBackListing(of: directory)
    case .file(let file): takeBack(file, invalidation.aspects)
    case .parts(let directory):
      refresh(directory, isForced: false)
      if invalidation.aspects.contains(.attributes) { volume.announcer?.note(.directory(directory)) }
    case .subtree(let directory): refresh(directory, isForced: true)
    case .renamed(let source, let target): volume.announcer?.note(.renaming(source, to: target))
    }
  }

  /// The names on which a part that arrived has a say, with its layer.
  private typealias ArrivedNames = (layer: Int, names: [[UInt8]])

  /// Beside the names there may be others that nobody asked for; whoever looks at the directory sees those.
  private func announce(_ change: Volume.PartsChange, _ arrived: [ArrivedNames], of directory: NodeID) {
    if volume.announcer == nil { return }
    for (layer, names) in arrived {
      for name in names { announce(name, of: directory, [layer], .came) }
    }
    for name in change.uncovered { announce(name, of: directory, change.departed, .uncovered) }
    for (name, aspects) in volume.departedNames(from: directory, of: change.departed) {
      announce(name, of: directory, change.departed, aspects)
    }
  }

  private func announce(
    _ name: [UInt8], of directory: NodeID, _ layers: Set<Int>, _ aspects: Invalidation.Aspects
  ) {
    guard let announcer = volume.announcer, !aspects.isDisjoint(with: .news) else { return }
    let place = EntryKey(parent: directory, name: name)
    announcer.note(.name(place, NameChange(aspects: aspects, layers: layers)))
  }

  // The kernel answers ENOENT where it knows nothing of what is taken back: then all is well.

  private func takeBack(
    _ name: [UInt8], of directory: NodeID, _ layer: Int, _ aspects: Invalidation.Aspects
  ) {
    // First the name, which waits for lookups in flight: the nodes that they make are known afterwards.
    expire(name, of: directory)
    for node in volume.files(named: name, in: directory, of: layer) { takeBack(node, aspects) }
    // So does a directory, which a lookup in flight may have looked at before the change.
    if let child = volume.childDirectory(named: name, in: directory) { refresh(child, isForced: false) }
    // What was written to it by its new name, nobody told.
    if aspects.contains(.link), let file = volume.linkedFile(named: name, in: directory, of: layer) {
      takeBack(file, .content)
    }
  }

  private func takeBack(_ file: NodeID, _ aspects: Invalidation.Aspects) {
    // What happened to a file between the loss of its name and its own watch, nobody told.
    let wasUnwatched = volume.watchDetached(file)
    if aspects.contains(.content) || wasUnwatched {
      volume.counters.contents.add(1)
      try? kernel.invalidateContent(of: file)
    } else if aspects.contains(.attributes) {
      volume.counters.attributes.add(1)
      try? kernel.invalidateAttributes(of: file)
    }
  }

  private func takeBackListing(of directory: NodeID) {
    // A listing in flight would still add what it read before.
    expire(Self.nobody, of: directory)
    volume.counters.contents.add(1)
    try? kernel.invalidateContent(of: directory)
  }

  private func expire(_ name: [UInt8], of directory: NodeID) {
    volume.counters.entries.add(1)
    try? kernel.expireEntry(name, in: directory)
  }

  /// Looks at a directory anew, and at those below, down to where nothing changed. A tree may be deeper than
  /// the thread's stack.
  private func refresh(_ directory: NodeID, isForced: Bool) {
    var waiting = [(directory, isForced)]
    while let (next, isForced) = waiting.popLast() {
      guard let change = volume.refreshParts(of: next, isForced: isForced) else { continue }
      takeBack(change, of: next)
      for child in volume.childDirectories(of: next) { waiting.append((child, change.isForced)) }
    }
  }

  /// A part that cannot be read has no names to show either.
  private static func names(of part: LayerDirectory) -> [[UInt8]] { (try? part.concernedNames()) ?? [] }

  /// Takes back what came or went with a directory's parts.
  private func takeBack(_ change: Volume.PartsChange, of directory: NodeID) {
    // Requests in flight still answered from the former parts.
    expire(Self.nobody, of: directory)
    let arrived = change.arrived.map { ($0.layer, Self.names(of: $0)) }
    // Before anything is forgotten of the former parts.
    if !change.isForced { announce(change, arrived, of: directory) }
    var names = volume.knownNames(in: directory)
    for (_, ofPart) in arrived { names.formUnion(ofPart) }
    for part in change.uncoveredParts { names.formUnion(Self.names(of: part)) }
    for name in names { expire(name, of: directory) }
    for reader in volume.detachReaders(in: directory, of: change.departed) { takeBack(reader, .attributes) }
    if change.isForced {
      for file in volume.files(in: directory) { takeBack(file, .content) }
    }
    takeBackListing(of: directory)
    volume.announcer?.note(.directory(directory))
  }
}
