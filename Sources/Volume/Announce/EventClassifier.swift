import Layers
import Posix

/// Derives the events for watchers of the mount from what happened to a name in the layers.
enum EventClassifier {
  /// What a name refers to in a set of layers.
  enum Presence: Equatable {
    case nothing
    case file(layer: Int, FileKind)
    case directory
  }

  enum Event: Hashable {
    case appeared(FileKind)
    case disappeared(isDirectory: Bool)
    /// The content changed, and its writer has closed the file.
    case written
    /// The content changed, and its writer may still change it.
    case modified
    /// The writer closed the file; the content was announced before.
    case closed
    case attributes
  }

  /// - Parameters:
  ///   - others: what the name would refer to without the layers of the change.
  ///   - isHidden: whether a whiteout or opaque directory of another layer hides the change.
  static func events(
    for change: NameChange, after: Presence, others: Presence, isHidden: Bool
  ) -> [Event] {
    switch after {
    case .nothing: isHidden ? [] : removalEvents(change.aspects, others)
    // A change below the topmost file is invisible.
    case .file(let layer, let kind):
      change.layers.contains { $0 <= layer } || change.aspects.contains(.revealed)
        ? fileEvents(change.aspects, kind, former(change.aspects, others)) : []
    case .directory:
      change.aspects.contains(.knownDirectory)
        ? [.attributes] : directoryEvents(change.aspects, former(change.aspects, others))
    }
  }

  private static func removalEvents(_ aspects: Invalidation.Aspects, _ others: Presence) -> [Event] {
    if aspects.contains(.removed) {
      return [.disappeared(isDirectory: !aspects.isDisjoint(with: [.removedDirectory, .knownDirectory]))]
    }
    // A new whiteout hides the entry of the other layers.
    guard aspects.contains(.added), others != .nothing else { return [] }
    return [.disappeared(isDirectory: others == .directory)]
  }

  private enum Former { case nothing, file, directory }

  /// What the name referred to before the change, as far as the aspects and the other layers show.
  private static func former(_ aspects: Invalidation.Aspects, _ others: Presence) -> Former {
    if aspects.contains(.knownFile) { return .file }
    if !aspects.isDisjoint(with: [.knownDirectory, .removedDirectory]) { return .directory }
    if aspects.contains(.revealed) { return .nothing }
    if aspects.contains(.removed) || !aspects.contains(.added) { return .file }
    switch others {
    case .nothing: return .nothing
    case .file: return .file
    case .directory: return .directory
    }
  }

  private static func fileEvents(
    _ aspects: Invalidation.Aspects, _ kind: FileKind, _ former: Former
  ) -> [Event] {
    if aspects.isDisjoint(with: [.added, .removed, .revealed]) {
      let events = kind == .regular ? contentEvents(aspects) : []
      return events.isEmpty ? [.attributes] : events
    }
    // A file that is still being written gets its final event with `IN_CLOSE_WRITE`.
    let isComplete = aspects.isDisjoint(with: .incomplete) || aspects.contains(.closed)
    let content: Event = isComplete ? .written : .modified
    switch former {
    case .nothing where kind == .regular: return isComplete ? [.appeared(kind), content] : [.appeared(kind)]
    case .nothing: return [.appeared(kind)]
    case .directory where kind == .regular:
      return [.disappeared(isDirectory: true), .appeared(kind), content]
    case .directory: return [.disappeared(isDirectory: true), .appeared(kind)]
    // Symbolic links and devices have no content that could be written.
    case .file: return kind == .regular ? [content] : [.disappeared(isDirectory: false), .appeared(kind)]
    }
  }

  private static func contentEvents(_ aspects: Invalidation.Aspects) -> [Event] {
    switch (aspects.contains(.modified), aspects.contains(.closed)) {
    case (true, true): [.written]
    case (true, false): [.modified]
    case (false, true): [.closed]
    case (false, false): []
    }
  }

  private static func directoryEvents(_ aspects: Invalidation.Aspects, _ former: Former) -> [Event] {
    if aspects.isDisjoint(with: [.added, .removed, .revealed]) { return [.attributes] }
    switch former {
    case .nothing: return [.appeared(.directory)]
    case .file: return [.disappeared(isDirectory: false), .appeared(.directory)]
    case .directory: return [.attributes]
    }
  }
}
