import Posix

/// What it takes to write the top layer's entries into a layer below, the target, and to empty the top layer of them.
public struct ApplyPlan: Sendable {
  /// Why an entry stays in the top layer.
  public enum Obstacle: Sendable, Equatable {
    /// The layer, which is between, has the name or hides it: what the target gets would not show.
    case covered(layer: Int)
    /// The layer, which is between, has what the top layer hides: it would show.
    case uncovered(layer: Int)
    /// The layer, which is between, has the directory with other attributes: they would show.
    case attributes(layer: Int)
    /// A directory above is opaque, and is not applied as a whole.
    case opaqueAbove
    /// The table of strings is shown merged with the target's, whose other strings would be lost.
    case partialTable
    /// The catalog of strings, or one for the table, is merged with tables, among which its place would be another one.
    case catalog
    /// The folder has the name in several spellings, which are one name where case does not count.
    case spellings
    /// The mount itself has the name, so it shows no layer's entry.
    case reserved
    /// Another file system is mounted there.
    case otherFileSystem
    /// It cannot be read.
    case unreadable(Errno)
  }

  /// What becomes of an entry.
  public enum Action: Sendable, Equatable {
    /// A directory that both layers have, with the same attributes.
    case merge
    /// A directory that both layers have: the target's gets the top layer's attributes.
    case change
    /// The target has nothing of the name.
    case add
    /// The target has an entry of the name.
    case replace
    /// The target's entry goes.
    case remove
    /// A whiteout that hides nothing in the target.
    case drop
    /// It stays in the top layer.
    case keep
  }

  /// What the top layer has.
  enum Source: Sendable {
    /// Nothing: an opaque directory hides the target's entry.
    case nothing
    case whiteout
    case file(FileStatus)
    case directory
  }

  /// What happens to one entry.
  public struct Step: Sendable {
    /// The index of the step of the directory that contains the entry; the root, which is the first, contains itself.
    let parent: Int
    /// The name in the top layer.
    let name: [UInt8]
    /// The name in the target.
    let targetName: [UInt8]
    let source: Source
    /// What becomes of the entry.
    public internal(set) var action: Action
    /// The kind of the entry that is added, or that goes.
    public let kind: FileKind
    /// Why the entry, or of a directory that is applied the directory itself, stays in the top layer.
    public internal(set) var obstacle: Obstacle?
    /// How many entries are in the target's directory that goes.
    public internal(set) var count = 0
    /// Whether a layer below the target would show the name once the target's entry is gone.
    var leavesWhiteout = false
    /// Whether the top layer's directory is opaque.
    var isOpaque = false
    /// Whether the target's directory must be opaque, so that it hides the same directories.
    var becomesOpaque = false
    /// Whether all that is in the top layer's directory has a step.
    var isWhole = false

    init(
      parent: Int, name: [UInt8], targetName: [UInt8], source: Source, action: Action, kind: FileKind,
      obstacle: Obstacle? = nil
    ) {
      (self.parent, self.name, self.targetName) = (parent, name, targetName)
      (self.source, self.action, self.kind, self.obstacle) = (source, action, kind, obstacle)
    }

    var isDirectory: Bool { if case .directory = source, action != .keep { true } else { false } }
  }

  /// A directory comes before what is in it. The first one is the root.
  public internal(set) var steps: [Step] = []

  /// The path of a step in the top layer.
  public func path(of index: Int) -> [[UInt8]] {
    var (names, index) = ([[UInt8]](), index)
    while index != 0 {
      names.append(steps[index].name)
      index = steps[index].parent
    }
    return names.reversed()
  }

  /// Whether there is anything to do.
  public var isEmpty: Bool {
    steps.dropFirst().allSatisfy { $0.action == .keep || ($0.action == .merge && !$0.isWhole) }
      && !(steps.first.map { $0.isOpaque && $0.isWhole } ?? false)
  }

  /// The directories that contain a step, from the innermost to the root.
  func ancestors(of index: Int) -> [Int] {
    var (found, index) = ([Int](), index)
    while index != 0 {
      index = steps[index].parent
      found.append(index)
    }
    return found
  }
}
