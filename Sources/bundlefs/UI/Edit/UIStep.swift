import Layers
import Posix

/// A name of the top layer that an edit has changed, and what was there before.
struct UIStep {
  /// The path of the directory.
  let parent: [[UInt8]]
  let name: [UInt8]
  /// What was there before.
  let taken: TakenEntry
  /// Its trace.
  let former: EntryTrace
  /// The trace of what the edit has left there.
  let left: EntryTrace

  var path: [[UInt8]] { parent + [name] }

  /// Whether one of them is at or above the other.
  func concerns(_ other: UIStep) -> Bool { path.starts(with: other.path) || other.path.starts(with: path) }

  /// The paths of steps that are in the directory of this one, relative to it, and those of their whiteout markers.
  func pathsBelow(of others: some Sequence<UIStep>) -> Set<[UInt8]> {
    var paths: Set<[UInt8]> = []
    for other in others where other.parent.starts(with: path) {
      let folder = Array(other.parent.dropFirst(path.count))
      paths.insert((folder + [other.name]).joinedPath)
      paths.insert((folder + [Array(".wh.".utf8) + other.name]).joinedPath)
    }
    return paths
  }
}

/// What a click has changed, and how it is undone.
struct UIEdit {
  enum Content {
    /// - Parameter layer: the path of the layer.
    case entries([UIStep], layer: [UInt8])
    /// The substitutions as they were before, and as they were set.
    case layers(former: [[UInt8]], set: [[UInt8]])
  }

  /// What it did, for the user.
  let label: String
  /// What it has not done.
  var note: String?
  var content: Content
  /// Whether it undid another one. Such an edit is lost, not in the way, if what it changed changes again.
  var isUndo = false

  func concerns(_ other: UIEdit) -> Bool {
    switch (content, other.content) {
    case (.layers, .layers): true
    case (.entries(let steps, let layer), .entries(let others, let otherLayer)):
      layer == otherLayer && steps.contains { step in others.contains { $0.concerns(step) } }
    default: false
    }
  }
}

/// What an edit has changed that failed, and that could not be changed back. It can be undone later.
final class UIRemains {
  private(set) var edits: [UIEdit] = []

  func keep(_ steps: [UIStep], of top: TopLayer) {
    if steps.isEmpty { return }
    let names = steps.count == 1 ? shown(steps[0].path) : "\(steps.count) entries"
    edits.append(
      UIEdit(label: "Half changed \(names)", content: .entries(steps, layer: top.upper.layer.path)))
  }
}
