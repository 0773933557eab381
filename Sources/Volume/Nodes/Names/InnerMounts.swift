import Fuse
import Layers
import Posix

/// The mounts inside a mount where case does not count.
///
/// The kernel mounts a file system on a dentry, thus on one spelling of a path. So all spellings of a directory that leads to
/// such a mount have one node: the kernel gives a directory's inode one dentry only, and moves it, with what is mounted on
/// it and below it, to the spelling that was looked up last (`d_splice_alias`). That takes a LOOKUP for each change from one
/// spelling to another, so directories without a mount have a node for each spelling.
enum InnerMounts {
  /// The paths of mounts inside a mount, from its root on, in the spellings that the kernel has.
  static func paths(in mountPoint: [UInt8], _ mounts: [MountTableEntry] = MountTableEntry.all())
    -> [[[UInt8]]]
  {
    let slash = UInt8(ascii: "/")
    let prefix = mountPoint + [slash]
    return mounts.map(\.mountPoint).filter { $0.starts(with: prefix) }
      .map { $0.dropFirst(mountPoint.count).split(separator: slash).map(Array.init) }
  }
}

extension NodeStore {
  /// Records the mounts inside this one.
  /// - Parameter paths: their mount points from the root on, in the spellings that the kernel has.
  /// - Returns: the other spellings of directories on the way, which the kernel has to look up again.
  func setInnerMounts(_ paths: [[[UInt8]]]) -> [EntryKey] {
    if spellings == nil { return [] }
    let (leading, others) = table.withLock { table in
      let former = table.mounted
      if former.isEmpty, paths.isEmpty { return ([EntryKey](), [EntryKey]()) }
      table.mounted = []
      var (leading, others) = ([EntryKey](), [EntryKey]())
      for path in paths { table.addMount(at: path, former, &leading, &others) }
      return (leading, others)
    }
    for key in leading { recordSpelling(key.name, in: key.parent) }
    return others
  }

  /// The mounts on what is no directory, which one spelling of a path leads to.
  func mountsOfOneSpelling(_ paths: [[[UInt8]]]) -> [[[UInt8]]] {
    table.withLock { table in
      paths.filter { path in
        var slot = NodeTable.root
        for name in path {
          guard
            let next = table.directories(named: name, in: slot).first(where: { table.mounted.contains($0) })
          else { return true }
          slot = next
        }
        return false
      }
    }
  }
}

extension NodeTable {
  /// Adds the directories on the way to a mount point to those that have one node for all spellings.
  fileprivate mutating func addMount(
    at path: [[UInt8]], _ former: Set<UInt32>, _ leading: inout [EntryKey], _ others: inout [EntryKey]
  ) {
    var slot = Self.root
    for name in path {
      let named = directories(named: name, in: slot)
      // A lookup since the mount table was read may have changed its spelling.
      guard
        let next = named.first(where: { former.contains($0) || mounted.contains($0) })
          ?? named.first(where: { isNamed($0, name, in: slot) })
      else { return }
      mounted.insert(next)
      let parent = number(of: slot)
      for slot in named {
        let key = EntryKey(parent: parent, name: self.name(of: slot))
        if slot == next { leading.append(key) } else { others.append(key) }
      }
      slot = next
    }
  }

  /// Finds the node of a directory that has one for all spellings, by any of them, which becomes its name, and increments its
  /// lookup count.
  /// - Returns: 0 for any other directory.
  mutating func lookUpShared(_ name: [UInt8], in parent: UInt32) -> UInt32 {
    if mounted.isEmpty, !sharesDirectories { return 0 }
    let named = directories(named: name, in: parent)
    guard let slot = named.first(where: { sharesDirectories || mounted.contains($0) }) else { return 0 }
    if !isNamed(slot, name, in: parent) {
      let former = EntryKey(parent: number(of: parent), name: self.name(of: slot))
      rename(slot, from: former, to: name, in: parent)
    }
    nodes[Int(slot)].lookups += 1
    return slot
  }
}
