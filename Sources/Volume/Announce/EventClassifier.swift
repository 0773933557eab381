import Fuse
import Layers
import Posix

/// Which events watchers of the mount are owed for what happened to a name in the layers.
enum EventClassifier {
  /// What a name stands for, or stood for.
  enum Presence: Equatable {
    case nothing
    case file(layer: Int, FileKind)
    case directory

    var isThere: Bool { self != .nothing }
  }

  /// What watchers are to hear.
  enum Event: Hashable {
    case appeared(FileKind)
    case disappeared(isDirectory: Bool)
    /// Its content is another one; whoever wrote it is done.
    case written
    /// Its content is another one, and may soon be another again.
    case modified
    /// Whoever may have written it is done.
    case closed
    case attributes
  }

  /// The events.
  /// - Parameters:
  ///   - after: what the name stands for now.
  ///   - others: what it would stand for without the layers in which something happened.
  ///   - isHidden: whether a mark of another layer hides what happened.
  static func events(
    for news: NameChange, after: Presence, others: Presence, isHidden: Bool
  ) -> [Event] {
    switch after {
    case .nothing: isHidden ? [] : ofNothing(news.aspects, others)
    // What happens below the file that is seen, nobody sees.
    case .file(let layer, let kind):
      news.layers.contains { $0 <= layer } || news.aspects.contains(.uncovered)
        ? ofFile(news.aspects, kind, before(news.aspects, others)) : []
    case .directory:
      news.aspects.contains(.knownDirectory)
        ? [.attributes] : ofDirectory(news.aspects, before(news.aspects, others))
    }
  }

  private static func ofNothing(_ news: Invalidation.Aspects, _ others: Presence) -> [Event] {
    if news.contains(.went) {
      return [.disappeared(isDirectory: !news.isDisjoint(with: [.wentDirectory, .knownDirectory]))]
    }
    // A mark came, which hides the others' entry.
    guard news.contains(.came), others.isThere else { return [] }
    return [.disappeared(isDirectory: others == .directory)]
  }

  private enum Before { case nothing, file, directory }

  /// What the name stood for before, as far as that can be told.
  private static func before(_ news: Invalidation.Aspects, _ others: Presence) -> Before {
    if news.contains(.knownFile) { return .file }
    if !news.isDisjoint(with: [.knownDirectory, .wentDirectory]) { return .directory }
    if news.contains(.uncovered) { return .nothing }
    if news.contains(.went) || !news.contains(.came) { return .file }
    switch others {
    case .nothing: return .nothing
    case .file: return .file
    case .directory: return .directory
    }
  }

  private static func ofFile(
    _ news: Invalidation.Aspects, _ kind: FileKind, _ before: Before
  ) -> [Event] {
    if news.isDisjoint(with: [.came, .went, .uncovered]) {
      let events = kind == .regular ? ofContent(news) : []
      return events.isEmpty ? [.attributes] : events
    }
    // What is still being written tells of its end by itself.
    let isWhole = news.isDisjoint(with: .begun) || news.contains(.closed)
    let content: Event = isWhole ? .written : .modified
    switch before {
    case .nothing where kind == .regular: return isWhole ? [.appeared(kind), content] : [.appeared(kind)]
    case .nothing: return [.appeared(kind)]
    case .directory where kind == .regular:
      return [.disappeared(isDirectory: true), .appeared(kind), content]
    case .directory: return [.disappeared(isDirectory: true), .appeared(kind)]
    // A link or a device has no content that could be written.
    case .file: return kind == .regular ? [content] : [.disappeared(isDirectory: false), .appeared(kind)]
    }
  }

  private static func ofContent(_ news: Invalidation.Aspects) -> [Event] {
    switch (news.contains(.modified), news.contains(.closed)) {
    case (true, true): [.written]
    case (true, false): [.modified]
    case (false, true): [.closed]
    case (false, false): []
    }
  }

  private static func ofDirectory(_ news: Invalidation.Aspects, _ before: Before) -> [Event] {
    if news.isDisjoint(with: [.came, .went, .uncovered]) { return [.attributes] }
    switch before {
    case .nothing: return [.appeared(.directory)]
    case .file: return [.disappeared(isDirectory: false), .appeared(.directory)]
    case .directory: return [.attributes]
    }
  }
}
