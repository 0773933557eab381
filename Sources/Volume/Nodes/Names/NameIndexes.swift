import Containers
import Fuse
import Layers
import Posix

/// The indexes of names that directories of many layers have, as far as they are kept: the least recently used ones go.
///
/// An index is made of a listing, while watches stand on all parts; each event of a name since that began marks the name as
/// changed, and a changed name is looked up in all parts, as without an index. An index is only asked once all events have
/// been handled (`NodeWatcher.hasHandledAll`), so it misses no change that was finished before.
final class NameIndexes: Sendable {
  /// The largest size of all indexes, in bytes.
  static let sizeLimit = 32 << 20
  static let countLimit = 4096
  /// An index is dropped when more names have changed, and an eighth of its names.
  static let changeLimit = 256
  /// An index is made when so many names have been looked up without one. Each time that one was hardly used before it was
  /// dropped, it takes twice as many.
  static let fewestLookups = 4
  static let mostLookups = 1024

  /// Guarded by the lock of `indexes`.
  fileprivate final class Entry: @unchecked Sendable {
    /// The directory whose parts were listed.
    let directory: UInt64
    /// nil while it is being made, and while none is wanted yet.
    var index: NameIndex?
    var isBeingMade = false
    var changed: Set<[UInt8]> = []
    /// How many names were looked up without an index.
    var lookups = 0
    var uses = 0
    var neededLookups: Int

    init(_ directory: UInt64, neededLookups: Int = fewestLookups) {
      (self.directory, self.neededLookups) = (directory, neededLookups)
    }
  }

  /// An index that is being made.
  struct Making: Sendable {
    fileprivate let entry: Entry
    fileprivate let node: NodeID
  }

  private let indexes = Locked(LRUCache<NodeID, Entry>(countLimit: countLimit, costLimit: sizeLimit))
  private let foldsNames: Bool

  init(foldsNames: Bool) { self.foldsNames = foldsNames }

  /// Whether a directory has an index.
  func has(_ node: NodeID, _ directory: MergedDirectory) -> Bool {
    indexes.withLock { indexes in
      guard let entry = indexes.value(for: node) else { return false }
      return entry.directory == directory.serialNumber && entry.index != nil
    }
  }

  /// The parts that have something of a name. The caller has found that all events are handled, and verifies after this that
  /// the watches still stand.
  /// - Returns: nil if all parts are to be asked.
  func places(of name: CName, in node: NodeID, _ directory: MergedDirectory) -> [NameIndex.Place]? {
    let key = key(of: [UInt8](bytesOf: name))
    return indexes.withLock { indexes in
      guard let entry = indexes.value(for: node), entry.directory == directory.serialNumber,
        let index = entry.index, !entry.changed.contains(key)
      else { return nil }
      entry.uses += 1
      return index.places(of: name)
    }
  }

  /// Counts a lookup without an index.
  /// - Returns: whether one is to be made.
  func recordLookup(in node: NodeID, _ directory: MergedDirectory) -> Bool {
    indexes.withLock { indexes in
      guard let entry = indexes.value(for: node), entry.directory == directory.serialNumber else {
        indexes.insert(Entry(directory.serialNumber), for: node)
        return false
      }
      if entry.index != nil || entry.isBeingMade { return false }
      entry.lookups += 1
      return entry.lookups >= entry.neededLookups
    }
  }

  /// Begins an index. The parts must be watched already, and be listed after this.
  /// - Returns: nil if there is one, or another thread makes one.
  func begin(_ node: NodeID, _ directory: MergedDirectory) -> Making? {
    indexes.withLock { indexes in
      let former = indexes.value(for: node)
      if let former, former.directory == directory.serialNumber, former.index != nil || former.isBeingMade {
        return nil
      }
      let entry = Entry(directory.serialNumber, neededLookups: former?.neededLookups ?? Self.fewestLookups)
      entry.isBeingMade = true
      indexes.insert(entry, for: node)
      return Making(entry: entry, node: node)
    }
  }

  /// Ends the making of an index.
  /// - Parameters:
  ///   - index: nil if it could not be made.
  ///   - isWorthRetrying: whether a few lookups are to make one.
  func end(_ making: Making, _ index: NameIndex?, isWorthRetrying: Bool) {
    indexes.withLock { indexes in
      let entry = making.entry
      entry.isBeingMade = false
      // Something may have happened that changes more than names.
      guard let present = indexes.value(for: making.node), present === entry else { return }
      if !isWorthRetrying { entry.neededLookups = Self.mostLookups }
      guard let index else { return }
      entry.index = index
      // The hash table has up to two buckets of 4 bytes a name.
      indexes.insert(entry, for: making.node, cost: index.size + 4 * index.count)
    }
  }

  /// Records an event of a directory's part in a layer.
  /// - Parameter countsOwnAttributes: whether an event of the attributes of a part in the topmost layer is one of another
  ///   program.
  func record(_ event: InotifyEvent, in node: NodeID, layer: Int, countsOwnAttributes: Bool) {
    if event.name.isEmpty {
      // The part may be gone, or its names no longer be found by this process.
      if event.mask == .attributes || event.mask == [.attributes, .isDirectory], layer == 0,
        !countsOwnAttributes
      {
        return
      }
      return remove(node)
    }
    if event.mask.isDisjoint(with: .names) { return }
    indexes.withLock { indexes in
      guard let entry = indexes.value(for: node), entry.index != nil || entry.isBeingMade else {
        return
      }
      entry.changed.insert(key(of: WhiteoutMarker.name(concernedBy: event.name)))
      if entry.changed.count > max(Self.changeLimit, (entry.index?.count ?? 0) / 8) {
        Self.drop(entry, of: node, &indexes)
      }
    }
  }

  /// Drops what is known of a directory.
  func remove(_ node: NodeID) {
    indexes.withLock { indexes in
      if let entry = indexes.value(for: node) { Self.drop(entry, of: node, &indexes) }
    }
  }

  /// Drops all indexes: events were lost.
  func removeAll() {
    indexes.withLock { $0 = LRUCache(countLimit: Self.countLimit, costLimit: Self.sizeLimit) }
  }

  /// The bytes that all indexes take.
  var size: Int { indexes.withLock { $0.cost } }

  private static func drop(
    _ entry: Entry, of node: NodeID, _ indexes: inout LRUCache<NodeID, Entry>
  ) {
    let wasUsed = entry.uses > entry.neededLookups
    let needed = wasUsed ? fewestLookups : min(entry.neededLookups * 2, mostLookups)
    indexes.insert(Entry(entry.directory, neededLookups: needed), for: node)
  }

  private func key(of name: [UInt8]) -> [UInt8] { foldsNames ? NameFolding.key(of: name) : name }
}
