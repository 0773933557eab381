import Fuse
import Layers
import Posix

/// The times of `-o mtime=visible` by name and node; all do nothing without the option.
extension NodeStore {
  private func version(_ attributes: FileStatus, layer: Int) -> FileVersion {
    FileVersion(attributes, isInArchive: stack[layer].archive != nil)
  }

  /// - Returns: nil below a directory that has lost its name.
  private func timeKey(of name: [UInt8], in directory: NodeID) -> UInt64? {
    table.withLock { table in
      (try? table.slot(of: directory)).flatMap { table.pathHash(of: name, in: $0, folds: spellings != nil) }
    }
  }

  /// The earliest time that is shown of what a look-up has found.
  func earliestTime(of attributes: FileStatus, layer: Int, _ name: CName, in directory: NodeID) -> TimeSpec? {
    guard let visibleTimes else { return nil }
    let key = timeKey(of: [UInt8](bytesOf: name), in: directory)
    return visibleTimes.look(key, version(attributes, layer: layer))
  }

  /// The earliest time that is shown of a node's file.
  func earliestTime(of attributes: FileStatus, _ node: NodeID) -> TimeSpec? {
    guard let visibleTimes, let place = timePlace(of: node) else { return nil }
    return visibleTimes.stat(place.key, version(attributes, layer: place.layer))
  }

  private func timePlace(of node: NodeID) -> (key: UInt64?, layer: Int)? {
    table.withLock { table in
      guard let slot = try? table.slot(of: node) else { return nil }
      let isNamed = !table[slot].isDetached && !table[slot].isUnlinked
      let key =
        isNamed
        ? table.pathHash(of: table.name(of: slot), in: table[slot].parent, folds: spellings != nil) : nil
      return (key, Int(table[slot].layer))
    }
  }

  /// Records that a name may have begun to show something else, before the kernel is notified.
  /// - Parameter isContent: whether a file's content may have been changed in place.
  func markTime(of name: [UInt8], in directory: NodeID, isContent: Bool = false) {
    guard let visibleTimes, let key = timeKey(of: name, in: directory) else { return }
    visibleTimes.mark(key, isContent: isContent)
  }

  /// Records that a program has set the time of a file of the upper layer.
  func recordSetTime(of node: NodeID, _ attributes: FileStatus) {
    guard let visibleTimes, let place = timePlace(of: node) else { return }
    visibleTimes.set(place.key, version(attributes, layer: 0))
  }

  /// Records the copy that is about to take a file's place, which shows the same time.
  func recordTimeOfCopy(_ copy: FileIdentity, of original: FileStatus, layer: Int, _ place: EntryKey) {
    guard let visibleTimes else { return }
    let key = timeKey(of: place.name, in: place.parent)
    visibleTimes.copy(of: version(original, layer: layer), is: copy, at: key)
  }

  /// Records that the mount has renamed a file, which shows the same time by its new name.
  func moveTime(of source: EntryKey, to target: EntryKey, isExchange: Bool = false) {
    guard let visibleTimes, let from = timeKey(of: source.name, in: source.parent),
      let to = timeKey(of: target.name, in: target.parent), from != to
    else { return }
    visibleTimes.move(from, to: to, isExchange: isExchange)
  }
}

extension NodeTable {
  /// A hash of the path of a name, the same in every process; nil below a directory that has lost its name.
  /// - Parameter folds: whether spellings of a name are one.
  fileprivate func pathHash(of name: [UInt8], in parent: UInt32, folds: Bool) -> UInt64? {
    var (directories, slot): ([UInt32], UInt32) = ([], parent)
    while slot != Self.root {
      if self[slot].isDetached { return nil }
      directories.append(slot)
      slot = self[slot].parent
    }
    let above = directories.reversed().reduce(0) { Self.hash(self.name(of: $1), after: $0, folds: folds) }
    // 0 is no hash of a name.
    return Self.hash(name, after: above, folds: folds) | 1
  }

  private static func hash(_ name: [UInt8], after above: UInt64, folds: Bool) -> UInt64 {
    var hash = mixedHash(above, 0xCBF2_9CE4_8422_2325)
    for byte in folds ? NameFolding.key(of: name) : name { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return mixedHash(hash)
  }
}
