import Fuse
import Layers
import Posix

/// What the mount's own changes do to nodes.
extension NodeTable {
  /// Binds a file's node to its copy in the upper layer, which has the same content.
  /// - Parameter inodeNumber: its new number in the mount; nil to keep the present one.
  /// - Returns: the former file, and the names by which the kernel may still know the former file.
  mutating func adoptCopy(
    _ copy: FileStatus, for slot: UInt32, inodeNumber: UInt64?
  ) -> (released: AnyObject?, brokenLinks: [EntryKey]) {
    let released = release(slot)
    var broken = hardLinks.names(of: slot)
    if isSharingName(slot) {
      broken.append(EntryKey(parent: number(of: nodes[Int(slot)].parent), name: name(of: slot)))
    }
    hardLinks.remove(slot)
    unindex(slot)
    nodes[Int(slot)].isUnlinked = false
    nodes[Int(slot)].hadHardLinks = false
    nodes[Int(slot)].identity = copy.identity
    nodes[Int(slot)].layer = 0
    if let inodeNumber { nodes[Int(slot)].inodeNumber = inodeNumber }
    memory?.set(.unknown, of: slot)
    if file(copy.identity, layer: 0) == 0 { index(slot) }
    return (released, broken)
  }

  /// Whether the kernel may know a file by the same name as another node, to which this one was not bound at first.
  private func isSharingName(_ slot: UInt32) -> Bool {
    let node = nodes[Int(slot)]
    return nodes(named: name(of: slot), in: node.parent)
      .contains {
        $0 != slot && nodes[Int($0)].identity == node.identity && nodes[Int($0)].layer == node.layer
      }
  }

  /// Takes a name away from the nodes that have it.
  /// - Parameter removed: the parts of a directory with this name.
  /// - Returns: what they held.
  mutating func detachAll(
    named name: [UInt8], in parent: UInt32, removed: MergedDirectory? = nil
  ) -> [AnyObject] {
    var released: [AnyObject] = []
    for slot in nodes(named: name, in: parent) {
      if nodes[Int(slot)].kind == .directory {
        released += takeName(
          from: slot, keeping: removed.map { NamelessDirectory(parts: $0, wasRemoved: true) })
      } else {
        detach(slot, from: name, in: parent)
      }
    }
    return released
  }

  /// Gives a node another name in place of one of its names, of which it loses all spellings.
  mutating func rename(_ slot: UInt32, from former: EntryKey, to name: [UInt8], in parent: UInt32) {
    let isFurther = !isLastName(former, of: slot)
    removeHardLinks(slot, at: former)
    if isFurther {
      hardLinks.add(slot, at: EntryKey(parent: number(of: parent), name: name))
    } else {
      // So that `move` does not take the former name for a further hard link.
      nodes[Int(slot)].isDetached = true
      move(slot, to: name, in: parent)
    }
    refreshByNewName(slot)
  }

  /// Has a refresh that is under way begin again: it may have looked for the former name of a directory after the layer had
  /// the new one. If one has found nothing so, the next request resolves the directory.
  private mutating func refreshByNewName(_ slot: UInt32) {
    guard let state = nodes[Int(slot)].directory else { return }
    state.exchanges += 1
    state.version += 1
    if state.parts?.isEmpty == true { _ = unresolve(slot) }
  }

  /// Whether a node was last looked up by a name, in any spelling.
  private func isLastName(_ key: EntryKey, of slot: UInt32) -> Bool {
    guard let parent = try? self.slot(of: key.parent) else { return false }
    return isNamed(slot, key.name, in: parent) || isSpelling(key.name, of: slot, in: parent)
  }

  /// What the upper layer has at a name, as far as the kernel knows.
  /// - Returns: nil for nothing, for an entry of another layer, and if the kernel may take the name for something else.
  func knownUpperEntry(named name: [UInt8], in parent: UInt32) -> FileIdentity? {
    let known = nodes(named: name, in: parent).filter { !nodes[Int($0)].isUnlinked }
    guard known.count == 1 else { return nil }
    let node = nodes[Int(known[0])]
    if let directory = node.directory {
      return directory.parts?.first.flatMap { $0.layer == 0 ? $0.identity : nil }
    }
    return node.layer == 0 ? node.identity : nil
  }

  /// Records that the mount has changed a node. What is prepared for its directory has the former state.
  mutating func recordAttributeChange(_ slot: UInt32) {
    nodes[Int(slot)].directory?.version += 1
    nodes[Int(nodes[Int(slot)].parent)].directory?.version += 1
  }
}
