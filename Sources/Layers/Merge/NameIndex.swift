import Containers
import CLibrary
import Posix

/// Which parts of a merged directory have something of a name: an entry of any kind, whiteouts included, or a marker. A
/// lookup then asks these parts only. Where case does not count, names are compared by what their spellings have in common.
///
/// It says nothing of what the entries are, so whiteouts and opaque markers are decided by the lookup, as without an index.
/// A name of 20 bytes takes some 50 bytes, and 8 for each further part that has it.
public struct NameIndex: Sendable {
  /// The parts of a layer in a directory; several where they are one name.
  public struct Place: Equatable, Sendable {
    /// The index of the layer's first part.
    public let part: Int
    /// Whether the layer may hide the name in the layers below by a marker.
    let mayHaveMarker: Bool
  }

  private struct Item {
    let start: UInt32
    /// The link of the next part above that has the name, plus 1; 0 for none.
    var next: UInt32
    /// The lowest place, as in `Link`.
    var place: UInt16
    let length: UInt8
  }

  private struct Link {
    let next: UInt32
    /// The index of the part; the highest bit says that there may be a marker.
    let place: UInt16
  }

  /// The most parts of a directory that has an index.
  static let mostParts = Int(markerBit) - 1
  private static let markerBit: UInt16 = 1 << 15

  private var bytes: [UInt8] = []
  private var items: [Item] = []
  private var links: [Link] = []
  /// The slot of item `i` is `i + 1`.
  private var slots = HashIndex()
  /// The parts whose names were not listed: a lookup always asks them.
  private var unlisted: [Int] = []
  private let foldsNames: Bool

  init(foldsNames: Bool) { self.foldsNames = foldsNames }

  /// How many names it has.
  public var count: Int { items.count }

  /// The bytes that it takes, as far as it knows.
  public var size: Int {
    bytes.count + items.count * MemoryLayout<Item>.stride + links.count * MemoryLayout<Link>.stride
      + items.count * 12 + unlisted.count * 8
  }

  /// The parts that have something of a name, or may have, top first.
  public func places(of name: CName) -> [Place] {
    let length = strlen(name)
    let listed = withKey(UnsafeRawBufferPointer(start: name, count: length)) { key in
      find(key, Self.hash(key)).map(places) ?? []
    }
    return unlisted.isEmpty ? listed : merged(listed)
  }

  /// Adds an entry of a part. The parts must be added from the top down.
  /// - Returns: false if there are too many names.
  mutating func add(_ entry: DirectoryEntry, part: Int) -> Bool {
    let whole = UnsafeRawBufferPointer(start: entry.name, count: entry.nameLength)
    let isMarker = WhiteoutMarker.isMarker(entry.name)
    let name =
      isMarker ? UnsafeRawBufferPointer(rebasing: whole.dropFirst(WhiteoutMarker.prefix.count)) : whole
    // Where names fold, a whiteout hides other spellings, too.
    let marker = isMarker || foldsNames ? Self.markerBit : 0
    guard foldsNames, let key = NameFolding.key(of: name) else {
      return add(name, UInt16(truncatingIfNeeded: part), marker)
    }
    return key.withUnsafeBytes { add($0, UInt16(truncatingIfNeeded: part), marker) }
  }

  /// Records that the names of a part are not known.
  mutating func addUnlisted(_ part: Int) { if unlisted.last != part { unlisted.append(part) } }

  /// Without the room for more names.
  func trimmed() -> NameIndex {
    var trimmed = NameIndex(foldsNames: foldsNames)
    trimmed.bytes = bytes.withUnsafeBufferPointer(Array.init)
    trimmed.items = items.withUnsafeBufferPointer(Array.init)
    trimmed.links = links.withUnsafeBufferPointer(Array.init)
    trimmed.unlisted = unlisted
    trimmed.slots = HashIndex(capacity: items.count)
    for (index, item) in items.enumerated() {
      trimmed.slots.insert(UInt32(index + 1), hash(of: item))
    }
    return trimmed
  }

  // MARK: - The table

  private mutating func add(_ key: UnsafeRawBufferPointer, _ part: UInt16, _ marker: UInt16) -> Bool {
    let hash = Self.hash(key)
    if let index = find(key, hash) {
      let place = items[index].place
      if place & ~Self.markerBit == part {
        items[index].place = place | marker
        return true
      }
      guard let next = UInt32(exactly: links.count + 1) else { return false }
      links.append(Link(next: items[index].next, place: place))
      items[index].next = next
      items[index].place = part | marker
      return true
    }
    guard let start = UInt32(exactly: bytes.count), let length = UInt8(exactly: key.count),
      let slot = UInt32(exactly: items.count + 1)
    else { return false }
    bytes.append(contentsOf: key)
    items.append(Item(start: start, next: 0, place: part | marker, length: length))
    slots.insert(slot, hash)
    return true
  }

  private func places(of index: Int) -> [Place] {
    var places = [Self.place(items[index].place)]
    var next = items[index].next
    while next != 0 {
      let link = links[Int(next) - 1]
      places.append(Self.place(link.place))
      next = link.next
    }
    places.reverse()
    return places
  }

  private static func place(_ place: UInt16) -> Place {
    Place(part: Int(place & ~markerBit), mayHaveMarker: place & markerBit != 0)
  }

  private func merged(_ listed: [Place]) -> [Place] {
    let others = unlisted.map { Place(part: $0, mayHaveMarker: true) }
    return (listed.filter { !unlisted.contains($0.part) } + others).sorted { $0.part < $1.part }
  }

  private func find(_ key: UnsafeRawBufferPointer, _ hash: UInt32) -> Int? {
    let slot = slots.first(hash) { slot in
      let item = items[Int(slot) - 1]
      guard Int(item.length) == key.count else { return false }
      guard let other = key.baseAddress else { return true }
      return bytes.withUnsafeBytes {
        memcmp($0.baseAddress.unsafelyUnwrapped + Int(item.start), other, key.count) == 0
      }
    }
    return slot == 0 ? nil : Int(slot) - 1
  }

  private func hash(of item: Item) -> UInt32 {
    bytes.withUnsafeBytes { all in
      Self.hash(UnsafeRawBufferPointer(rebasing: all[Int(item.start)..<Int(item.start) + Int(item.length)]))
    }
  }

  private static func hash(_ key: UnsafeRawBufferPointer) -> UInt32 {
    var hasher = Hasher()
    hasher.combine(bytes: key)
    return UInt32(truncatingIfNeeded: hasher.finalize())
  }

  private func withKey<Result>(
    _ name: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result {
    guard foldsNames, let key = NameFolding.key(of: name) else { return body(name) }
    return key.withUnsafeBytes(body)
  }
}

extension MergedDirectory {
  /// The fewest parts for which an index of the names is worth its memory.
  public static let fewestIndexedParts = 4

  /// Whether the names of all parts can be listed now by any thread. Where they are watched, an index of them can be kept true.
  public var isIndexable: Bool {
    parts.count >= Self.fewestIndexedParts && parts.count <= NameIndex.mostParts && missing == nil
      && !parts.contains { $0.gate.isIsolated }
  }

  /// Lists all parts.
  /// - Parameter limit: the most directory entries to read.
  /// - Throws: EFBIG if there are more; what reading a part throws, and what looking a name up in it throws.
  public func nameIndex(atMost limit: Int) throws(Errno) -> NameIndex {
    var index = NameIndex(foldsNames: foldsNames)
    var (records, first) = (0, 0)
    for (position, part) in parts.enumerated() {
      if isFirst(position) { first = position }
      guard try part.isListedForIndex() else {
        index.addUnlisted(first)
        continue
      }
      try part.forEachEntry { entry throws(Errno) in
        records += 1
        guard records <= limit, index.add(entry, part: first) else { throw .fileTooLarge }
      }
    }
    return index.trimmed()
  }
}

extension LayerDirectory {
  /// Whether an index has the names: an archive has them in memory, and no watch reports when it is exchanged for another.
  /// - Throws: EACCES and other errors that a lookup of any name throws here.
  func isListedForIndex() throws(Errno) -> Bool {
    guard case .descriptor = backing else { return false }
    _ = try contains(WhiteoutMarker.opaque.cName)
    return true
  }
}
