import Posix
import Synchronization

/// The entries of one layer's directory by the names that their spellings are.
struct FoldedNames: Sendable {
  /// The entries, the first by bytes of each name; whiteouts are none.
  private(set) var first: [[UInt8]: [UInt8]] = [:]
  /// All entries of the names that have several, sorted by bytes.
  private(set) var collisions: [[UInt8]: [[UInt8]]] = [:]
  /// The names that whiteouts hide in the layers below.
  private(set) var hidden: Set<[UInt8]> = []

  mutating func add(_ name: [UInt8], key: [UInt8]) {
    guard let present = first[key] else { return first[key] = name }
    let all = ((collisions[key] ?? [present]) + [name]).sorted { $0.lexicographicallyPrecedes($1) }
    collisions[key] = all
    first[key] = all[0]
  }

  mutating func hide(_ key: [UInt8]) { hidden.insert(key) }

  /// All entries of a name.
  func entries(_ key: [UInt8]) -> [[UInt8]] { collisions[key] ?? first[key].map { [$0] } ?? [] }

  /// The entry for a name: the one of that spelling, or else the first by bytes.
  func entry(_ name: [UInt8], key: [UInt8]) -> [UInt8]? {
    if let all = collisions[key], all.contains(name) { return name }
    return first[key]
  }
}

/// What a directory's spellings were when they were last read.
///
/// They are current as long as the directory's times are the same and no event has reported a change of its names.
final class SpellingIndex: Sendable {
  /// What changes with the names of a directory.
  struct State: Equatable {
    let modified: TimeSpec
    let changed: TimeSpec
    /// Of an archive: the number of its present content.
    var generation: UInt32 = 0
    var changes = 0
  }

  private struct Snapshot {
    let names: FoldedNames
    let state: State
  }

  /// Milliseconds in which a file system may give two changes the same time.
  private static let tick: Int32 = 20

  private let snapshot = Locked<Snapshot?>(nil)
  private let changes = Atomic(0)

  /// To be called when an event reports that a name came or went.
  func recordChange() { changes.add(1, ordering: .relaxed) }

  /// How many changes were recorded, to be read before the directory is.
  var changeCount: Int { changes.load(ordering: .relaxed) }

  /// The names, if the directory is still in a state in which they were read.
  func names(in state: State) -> FoldedNames? {
    snapshot.withLock { $0.flatMap { $0.state == state ? $0.names : nil } }
  }

  /// Keeps what was read in a state, unless the next change might not show in the state.
  func keep(_ names: FoldedNames, readIn state: State) {
    let now = TimeSpec.now
    let isSettled = now.milliseconds(since: max(state.modified, state.changed)) >= Self.tick
    snapshot.withLock { $0 = isSettled ? Snapshot(names: names, state: state) : nil }
  }
}
