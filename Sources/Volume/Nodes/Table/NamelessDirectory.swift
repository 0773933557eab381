import Fuse
import Layers

/// A directory that was removed through the mount while programs stand in it.
struct NamelessDirectory {
  /// What it consisted of when it was removed.
  var parts: MergedDirectory
}

extension NodeTable {
  /// The most parts that nameless directories keep: each holds a descriptor.
  private static let mostNamelessParts = 256

  private func hasRoom(for directory: MergedDirectory) -> Bool {
    let kept = namelessDirectories.values.reduce(0) { $0 + $1.parts.parts.count }
    return kept + directory.parts.count <= Self.mostNamelessParts
  }

  /// Takes a directory's name away; its node stays. It gets a name that no directory can have, so that a new one with the
  /// former name is another node.
  /// - Returns: what it held.
  mutating func takeName(from slot: UInt32, keeping directory: NamelessDirectory?) -> [AnyObject] {
    if let directory, hasRoom(for: directory.parts) { namelessDirectories[slot] = directory }
    let former = unresolve(slot).former
    nodes[Int(slot)].directory?.version += 1
    nodes[Int(slot)].directory?.uncachedReason = nil
    // Before, so that `move` does not take the former name for a further one; `move` attaches the node again.
    nodes[Int(slot)].isDetached = true
    move(slot, to: Array("/\(number(of: slot).rawValue)".utf8), in: nodes[Int(slot)].parent)
    nodes[Int(slot)].isDetached = true
    return former.map { [$0] } ?? []
  }

  /// nil for a directory with a name, and for one that has lost it under a predecessor.
  func namelessDirectory(_ node: NodeID) -> NamelessDirectory? {
    if namelessDirectories.isEmpty { return nil }
    return (try? slot(of: node)).flatMap { namelessDirectories[$0] }
  }
}
