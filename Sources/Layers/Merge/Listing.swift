import Glibc
import Posix

/// The names of a directory, each once, in the order in which they were found; kept compactly, since a
/// directory can have a hundred thousand of them.
public struct Listing: Sendable {
  /// One name.
  public struct Item: Sendable {
    fileprivate let start: UInt32
    fileprivate let length: UInt8
    /// The kind of the topmost entry of the name.
    public let kind: FileKind
    /// The layer that the entry comes from, 0 on top.
    public let layer: UInt16
    /// Where the entry is, except for directories: the inode number there.
    public let inode: UInt64
    /// Where the entry is: the device number of its file system.
    public let device: UInt64
  }

  /// The names' items.
  public private(set) var items: [Item] = []
  private var bytes: [UInt8] = []
  private var index = NameIndex()

  /// A listing without names.
  public init() {}

  /// Runs the body with an item's name, which ends with NUL.
  @inline(__always)
  public func withName<Result>(of item: Item, _ body: (CName) -> Result) -> Result {
    bytes.withUnsafeBytes { all in
      let start = all.baseAddress.unsafelyUnwrapped + Int(item.start)
      return body(start.assumingMemoryBound(to: CChar.self))
    }
  }

  /// An item's name.
  public func name(of item: Item) -> [UInt8] {
    Array(bytes[Int(item.start)..<Int(item.start) + Int(item.length)])
  }

  /// A hash of the name at a place among the items: the same for a name in all listings of this process.
  public func hash(at place: Int) -> UInt64 { index.hashes[place] }

  /// The place among the items of a name; nil if it is not listed.
  public func place(of name: CName, length: Int) -> Int? {
    index.find(UnsafeRawBufferPointer(start: name, count: length)) { matches($0, name, length) }
  }

  /// The place among the items of another listing's item's name.
  public func place(of item: Item, in other: Listing) -> Int? {
    other.withName(of: item) { place(of: $0, length: Int(item.length)) }
  }

  /// Adds another listing's item unless its name is there already; answers whether it was added.
  public mutating func add(_ item: Item, of other: Listing) -> Bool {
    other.withName(of: item) {
      add(
        $0, length: Int(item.length), kind: item.kind, layer: Int(item.layer), device: item.device,
        inode: item.inode)
    }
  }

  /// Adds a name that the layers themselves do not list, unless it is there already.
  public mutating func add(_ name: [UInt8], kind: FileKind, device: UInt64 = 0, inode: UInt64 = 0) {
    name.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress else { return }
      add(
        start.assumingMemoryBound(to: CChar.self), length: name.count, kind: kind, layer: 0, device: device,
        inode: inode)
    }
  }

  /// Adds a name unless it is there already; answers whether it was added.
  @discardableResult
  mutating func add(
    _ name: CName, length: Int, kind: FileKind, layer: Int, device: UInt64, inode: UInt64
  ) -> Bool {
    let key = UnsafeRawBufferPointer(start: name, count: length)
    if index.find(key, where: { matches($0, name, length) }) != nil { return false }
    let item = Item(
      start: UInt32(bytes.count), length: UInt8(length), kind: kind, layer: UInt16(layer), inode: inode,
      device: device)
    bytes.append(contentsOf: key)
    bytes.append(0)
    index.insert(key, at: items.count)
    items.append(item)
    return true
  }

  private func matches(_ place: Int, _ name: CName, _ length: Int) -> Bool {
    let item = items[place]
    guard Int(item.length) == length else { return false }
    return bytes.withUnsafeBytes {
      memcmp($0.baseAddress.unsafelyUnwrapped + Int(item.start), name, length) == 0
    }
  }
}

/// Where names stand in a list that its owner keeps: a hash table of places, open addressing.
///
/// Invariant: at most half of the slots are taken, so that a search always meets an empty one.
struct NameIndex: Sendable {
  private var slots: [UInt32] = []
  /// The names' hashes, by place.
  private(set) var hashes: [UInt64] = []
  private var count = 0
  private static let empty = UInt32.max

  func find(_ key: UnsafeRawBufferPointer, where matches: (Int) -> Bool) -> Int? {
    if slots.isEmpty { return nil }
    let hash = Self.hash(key)
    var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
    while slots[slot] != Self.empty {
      let place = Int(slots[slot])
      if hashes[place] == hash, matches(place) { return place }
      slot = (slot + 1) & (slots.count - 1)
    }
    return nil
  }

  /// Places are given in order from 0.
  mutating func insert(_ key: UnsafeRawBufferPointer, at place: Int) {
    precondition(place == hashes.count, "places are given in order")
    hashes.append(Self.hash(key))
    count += 1
    if count * 2 > slots.count { grow() } else { put(place) }
  }

  private mutating func grow() {
    slots = Array(repeating: Self.empty, count: max(16, slots.count * 2))
    for place in 0..<hashes.count { put(place) }
  }

  private mutating func put(_ place: Int) {
    var slot = Int(truncatingIfNeeded: hashes[place]) & (slots.count - 1)
    while slots[slot] != Self.empty { slot = (slot + 1) & (slots.count - 1) }
    slots[slot] = UInt32(place)
  }

  private static func hash(_ key: UnsafeRawBufferPointer) -> UInt64 {
    var hasher = Hasher()
    hasher.combine(bytes: key)
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }
}
