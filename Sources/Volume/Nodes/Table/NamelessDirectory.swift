import Fuse
import Layers

/// A directory that has lost its name, while programs still stand in it or have mounted it elsewhere.
struct NamelessDirectory {
  /// What it consisted of when it lost its name.
  var parts: MergedDirectory
  /// Whether it was removed through the mount; else a layer has another directory of that name, or none.
  let wasRemoved: Bool
}

extension NodeTable {
  /// The most parts that nameless directories keep: each holds a descriptor.
  private static let mostNamelessParts = 256

  private func hasRoom(for directory: MergedDirectory) -> Bool {
    let kept = namelessDirectories.values.reduce(0) { $0 + $1.parts.parts.count }
    return kept + directory.parts.count <= Self.mostNamelessParts
  }

  /// Takes a directory's name away; its node stays. It gets a name that no directory can have, so that a new one with the
  /// former name is another node. One that still is in its layers keeps its parts with their watches.
  /// - Returns: what it held.
  mutating func takeName(from slot: UInt32, keeping directory: NamelessDirectory?) -> [AnyObject] {
    if let directory, hasRoom(for: directory.parts) { namelessDirectories[slot] = directory }
    var former: AnyObject?
    if directory?.wasRemoved ?? true {
      former = unresolve(slot).former
      nodes[Int(slot)].directory?.uncachedReason = nil
    }
    nodes[Int(slot)].directory?.version += 1
    nodes[Int(slot)].directory?.exchanges += 1
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

  /// Gives a directory that has lost its name the one under which a lookup has found it: it was renamed in its layer. The
  /// kernel moves its dentry, with what is mounted there (`d_splice_alias`).
  /// - Returns: what it held; nil if no such directory was nameless.
  mutating func rename(
    _ parts: [LayerDirectory], to name: [UInt8], in parent: UInt32
  ) -> (slot: UInt32, directory: NamelessDirectory)? {
    if namelessDirectories.isEmpty || directory(name, in: parent) != 0 { return nil }
    let renamed = namelessDirectories.first { _, directory in
      !directory.wasRemoved
        && directory.parts.parts.elementsEqual(parts) { PartIdentity($0) == PartIdentity($1) }
    }
    // Where directories have been exchanged, the former tree may still have the new parent below the renamed one.
    guard let (slot, directory) = renamed, !isSame(parent, orBelow: slot) else { return nil }
    namelessDirectories[slot] = nil
    // A refresh that began before has resolved it by its former name.
    nodes[Int(slot)].directory?.exchanges += 1
    memory?.set(.unknown, of: slot)
    move(slot, to: name, in: parent)
    return (slot, directory)
  }

  private func isSame(_ slot: UInt32, orBelow ancestor: UInt32) -> Bool {
    var next = slot
    while next != Self.root, next != ancestor { next = nodes[Int(next)].parent }
    return next == ancestor
  }

  /// What the directory was whose name leads to another one by now, or to none; nil if it is still the same.
  ///
  /// It is the same as long as one of its parts is, and where the directory above was exchanged in a layer: a mount shows
  /// what its layers have at a path, so programs that stand in a directory follow a new stack of layers, a layer's new
  /// root, or a new version of an archive. Where a node has all spellings of its name, another spelling may lead to another
  /// directory.
  func replacedDirectory(_ slot: UInt32, by found: NodeStore.FoundDirectory) -> NamelessDirectory? {
    guard slot != Self.root, !sharesDirectories, let above = found.above,
      let state = nodes[Int(slot)].directory, let former = state.merged, let known = state.parts,
      let place = state.place, former.place(in: above) == place
    else { return nil }
    if found.merged?.parts.contains(where: { known.contains(PartIdentity($0)) }) == true { return nil }
    guard hasRoom(for: former) else { return nil }
    return NamelessDirectory(parts: former, wasRemoved: false)
  }
}

extension MergedDirectory {
  /// A hash of the parts of the directory above that are in the same layers; nil if one is in an archive or absent, or a layer is
  /// laid here.
  func place(in above: MergedDirectory) -> Int? {
    var hasher = Hasher()
    for part in parts {
      let partsAbove = above.parts(of: part.layer)
      if part.isInArchive || partsAbove.isEmpty || partsAbove.first?.isAboveLayer == true { return nil }
      for partAbove in partsAbove { hasher.combine(PartIdentity(partAbove)) }
    }
    return hasher.finalize()
  }
}
