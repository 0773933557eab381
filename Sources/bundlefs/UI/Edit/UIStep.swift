import Layers
import Posix

/// A name of the top layer that an edit has changed, and what was there before.
struct UIStep {
  /// The path of the directory.
  let parent: [[UInt8]]
  let name: [UInt8]
  /// What was there before.
  let taken: TakenEntry
  /// What the edit has left there.
  let left: Trace

  var path: [[UInt8]] { parent + [name] }

  /// By which a later change of what is at a path is noticed.
  enum Trace: Equatable {
    case nothing, whiteout
    case directory(FileIdentity)
    case file(FileIdentity, size: UInt64, modified: TimeSpec)

    init(at path: [[UInt8]], in upper: UpperLayer) throws(Errno) {
      switch try Layer.directory(upper.layer).entry(at: path) {
      case .nothing: self = .nothing
      case .whiteout: self = .whiteout
      case .directory(let status): self = .directory(status.identity)
      case .file(let status, _):
        self = .file(status.identity, size: status.size, modified: status.modified)
      }
    }
  }

  /// Whether one of them is at or above the other.
  func concerns(_ other: UIStep) -> Bool { path.starts(with: other.path) || other.path.starts(with: path) }
}

/// What a click has changed, and how it is undone.
struct UIEdit {
  enum Content {
    /// - Parameter layer: the path of the layer.
    case entries([UIStep], layer: [UInt8])
    /// The substitutions as they were before.
    case layers([[UInt8]])
  }

  /// What it did, for the user.
  let label: String
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
