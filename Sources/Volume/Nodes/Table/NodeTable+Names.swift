import Containers
import Layers
import Posix

extension NodeTable {
  /// The name by which the node was last looked up.
  func name(of slot: UInt32) -> [UInt8] { names.name(at: nodes[Int(slot)].name) }

  func path(of slot: UInt32) -> [[UInt8]] {
    var path: [[UInt8]] = []
    var slot = slot
    while slot != Self.root {
      path.append(name(of: slot))
      slot = nodes[Int(slot)].parent
    }
    return path.reversed()
  }

  /// The node's place and those of its ancestors, from the root on.
  func keys(upTo slot: UInt32) -> [EntryKey] {
    var (keys, slot) = ([EntryKey](), slot)
    while slot != Self.root {
      let parent = nodes[Int(slot)].parent
      keys.append(EntryKey(parent: number(of: parent), name: name(of: slot)))
      slot = parent
    }
    return keys.reversed()
  }

  func childDirectories(of slot: UInt32) -> [UInt32] {
    children(of: slot).filter { nodes[Int($0)].kind == .directory }
  }

  /// The folders of languages in a directory, such as `fr.lproj`.
  func languageFolders(in slot: UInt32) -> [UInt32] {
    childDirectories(of: slot).filter { TableName.isLanguageFolder(name(of: $0), foldsNames: foldsNames) }
  }

  /// The nodes that were last looked up in a directory.
  func children(of slot: UInt32) -> [UInt32] {
    var children: [UInt32] = []
    var child = nodes[Int(slot)].directory?.firstChild ?? 0
    while child != 0 {
      children.append(child)
      child = nodes[Int(child)].nextSibling
    }
    return children
  }

  /// Files near a file in the order of lookup that a predicate accepts: those looked up after it, nearest first, then those
  /// before it. Programs mostly read a directory in the order in which it was listed.
  func files(near slot: UInt32, count: Int, where mayTake: (UInt32) -> Bool) -> [UInt32] {
    // Bounded, since the caller holds the table's lock.
    var (found, steps) = ([UInt32](), 1024)
    for isForward in [true, false] {
      var next = slot
      while found.count < count, steps > 0 {
        next = isForward ? nodes[Int(next)].previousSibling : nodes[Int(next)].nextSibling
        if next == 0 { break }
        if mayTake(next) { found.append(next) }
        steps -= 1
      }
    }
    return found
  }

  /// The nodes that the kernel may know by a name, in any spelling; each once, although it may have several spellings.
  func nodes(named name: [UInt8], in parent: UInt32) -> [UInt32] {
    let last = slots(named: name, in: parent).filter { !nodes[Int($0)].isDetached }
    let further = hardLinks.nodes(at: EntryKey(parent: number(of: parent), name: name))
    return further.isEmpty ? last : last + further.filter { !last.contains($0) }
  }

  /// The directories that the kernel may know by a name, one for each spelling.
  func directories(named name: [UInt8], in parent: UInt32) -> [UInt32] {
    slots(named: name, in: parent).filter { nodes[Int($0)].kind == .directory }
  }

  /// The files that were last looked up by a name, in any spelling, including those that have lost it.
  func files(lastNamed name: [UInt8], in parent: UInt32) -> [UInt32] {
    slots(named: name, in: parent).filter { nodes[Int($0)].kind != .directory }
  }

  private func slots(named name: [UInt8], in parent: UInt32) -> [UInt32] {
    entries.all(hash(name, in: parent)) {
      isNamed($0, name, in: parent) || isSpelling(name, of: $0, in: parent)
    }
  }

  /// All names by which the kernel may know entries of a directory.
  func knownNames(in parent: UInt32) -> Set<[UInt8]> {
    Set(children(of: parent).map { name(of: $0) }).union(hardLinks.names(in: number(of: parent)))
  }

  // MARK: - Names and hard links

  /// Records that a name no longer refers to a file. If the file has another hard link, the node moves there.
  /// Else a pinned node is detached from its name; any other node stays with the name.
  mutating func detach(_ slot: UInt32, from name: [UInt8], in parent: UInt32) {
    removeHardLinks(slot, at: EntryKey(parent: number(of: parent), name: name))
    if !isNamed(slot, name, in: parent), !isSpelling(name, of: slot, in: parent) { return }
    if moveToHardLinkName(slot) { return }
    if nodes[Int(slot)].isPinned {
      nodes[Int(slot)].isDetached = true
    } else {
      nodes[Int(slot)].isUnlinked = true
    }
  }

  /// A further name of a file, to which its node may turn.
  mutating func hardLinkName(of slot: UInt32) -> EntryKey? {
    if nodes[Int(slot)].hadHardLinks { return furtherSpelling(of: slot) }
    while let key = hardLinks.first(of: slot) {
      if (try? self.slot(of: key.parent)) != nil { return key }
      _ = hardLinks.remove(slot, at: key)
    }
    return nil
  }

  /// Another spelling of a node's own name.
  private func furtherSpelling(of slot: UInt32) -> EntryKey? {
    let own = EntryKey(parent: number(of: nodes[Int(slot)].parent), name: name(of: slot))
    return foldsNames ? hardLinks.names(of: slot).first { HardLinkNames.areEqual($0, own) } : nil
  }

  /// Replaces the name of a file's node by another hard link of the file; false if there is none.
  mutating func moveToHardLinkName(_ slot: UInt32) -> Bool {
    guard let key = hardLinkName(of: slot), let parent = try? self.slot(of: key.parent) else {
      return false
    }
    _ = hardLinks.remove(slot, at: key)
    nodes[Int(slot)].isDetached = true
    move(slot, to: key.name, in: parent)
    return true
  }

  /// Sets a node's parent and name. A file's former name becomes a further hard link.
  mutating func move(_ slot: UInt32, to name: [UInt8], in parent: UInt32) {
    if !isNamed(slot, name, in: parent) {
      _ = hardLinks.remove(slot, at: EntryKey(parent: number(of: parent), name: name))
      let former = nodes[Int(slot)].parent
      if former != 0 {
        keepHardLink(slot, in: former)
        removeName(slot)
      }
      nodes[Int(slot)].parent = parent
      nodes[Int(slot)].name = names.add(name)
      linkToParent(slot)
      entries.insert(slot, hash(name, in: parent))
      // The former parent may have been kept only for this child.
      if former != 0 { deferredRelease.append(freeIfUnused(former)) }
    }
    nodes[Int(slot)].isDetached = false
    nodes[Int(slot)].isUnlinked = false
  }

  /// Adds a node's name to its hard links, unless the file has lost it.
  private mutating func keepHardLink(_ slot: UInt32, in parent: UInt32) {
    if nodes[Int(slot)].isDetached || nodes[Int(slot)].isUnlinked { return }
    hardLinks.add(slot, at: EntryKey(parent: number(of: parent), name: name(of: slot)))
  }

  mutating func removeName(_ slot: UInt32) {
    entries.remove(slot)
    names.remove(nodes[Int(slot)].name)
    if !nodes.isRecorded { names.reclaim() }
    unlinkFromParent(slot)
  }

  mutating func linkToParent(_ slot: UInt32) {
    let parent = nodes[Int(slot)].parent
    let next = nodes[Int(parent)].directory?.firstChild ?? 0
    nodes[Int(slot)].nextSibling = next
    nodes[Int(slot)].previousSibling = 0
    if next != 0 {
      nodes[Int(next)].previousSibling = slot
    } else {
      nodes[Int(parent)].directory?.oldestChild = slot
    }
    nodes[Int(parent)].directory?.firstChild = slot
    nodes[Int(parent)].directory?.children += 1
  }

  private mutating func unlinkFromParent(_ slot: UInt32) {
    let (parent, next) = (nodes[Int(slot)].parent, nodes[Int(slot)].nextSibling)
    let previous = nodes[Int(slot)].previousSibling
    if next != 0 {
      nodes[Int(next)].previousSibling = previous
    } else {
      nodes[Int(parent)].directory?.oldestChild = previous
    }
    if previous != 0 {
      nodes[Int(previous)].nextSibling = next
    } else {
      nodes[Int(parent)].directory?.firstChild = next
    }
    nodes[Int(parent)].directory?.children -= 1
  }

  func isNamed(_ slot: UInt32, _ name: [UInt8], in parent: UInt32) -> Bool {
    nodes[Int(slot)].parent == parent && names.has(name, at: nodes[Int(slot)].name)
  }
}
