import Containers
import CLibrary
import Posix

/// The names of a directory, each once, in the order of insertion. They are in one block of bytes, since a
/// directory can have a hundred thousand.
public struct Listing: Sendable {
  /// A name.
  public struct Item: Sendable {
    fileprivate let start: UInt32
    fileprivate let length: UInt8
    /// The kind of the topmost entry.
    public let kind: FileKind
    /// The layer of the entry, 0 on top.
    public let layer: UInt16
    /// The entry's inode number in its layer; undefined for directories.
    public let inode: UInt64
    /// The entry's device number.
    public let device: UInt64
  }

  /// A character device in a layer that hides a name.
  public struct Whiteout: Hashable, Sendable {
    /// The name that it has and hides.
    public let name: [UInt8]
    /// The index of its layer.
    public let layer: Int

    /// A whiteout of a name in a layer.
    public init(name: [UInt8], layer: Int) {
      self.name = name
      self.layer = layer
    }
  }

  /// The character devices that were met as whiteouts.
  public internal(set) var whiteouts: [Whiteout] = []
  /// In the order of insertion.
  public private(set) var items: [Item] = []
  private var bytes: [UInt8] = []
  /// The slot of item `i` is `i + 1`.
  private var slots = HashIndex()

  /// An empty listing.
  public init() {}

  /// Calls the body with an item's name as a C string.
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

  /// The index of the item with a name; nil if there is none.
  public func index(of name: CName, length: Int) -> Int? {
    find(name, length, Self.hash(UnsafeRawBufferPointer(start: name, count: length)))
  }

  /// The index of the item with the name of another listing's item; nil if there is none.
  public func index(of item: Item, in other: Listing) -> Int? {
    other.withName(of: item) { index(of: $0, length: Int(item.length)) }
  }

  /// Adds another listing's item; returns false if the name is present.
  public mutating func add(_ item: Item, of other: Listing) -> Bool {
    other.withName(of: item) {
      add(
        $0, length: Int(item.length), kind: item.kind, layer: Int(item.layer), device: item.device,
        inode: item.inode)
    }
  }

  /// Adds a name, unless it is present.
  /// - Parameter layer: of the entry; any for a name that is in no layer.
  public mutating func add(
    _ name: [UInt8], kind: FileKind, layer: Int = 0, device: UInt64 = 0, inode: UInt64 = 0
  ) {
    name.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress else { return }
      add(
        start.assumingMemoryBound(to: CChar.self), length: name.count, kind: kind, layer: layer,
        device: device, inode: inode)
    }
  }

  /// Adds a name; returns false if it is present, or if it is too long or the names of the directory exceed 4 GiB.
  @discardableResult
  mutating func add(
    _ name: CName, length: Int, kind: FileKind, layer: Int, device: UInt64, inode: UInt64
  ) -> Bool {
    let key = UnsafeRawBufferPointer(start: name, count: length)
    let hash = Self.hash(key)
    if find(name, length, hash) != nil { return false }
    guard let start = UInt32(exactly: bytes.count), let byteLength = UInt8(exactly: length) else {
      return false
    }
    let item = Item(
      start: start, length: byteLength, kind: kind, layer: UInt16(layer), inode: inode, device: device)
    bytes.append(contentsOf: key)
    bytes.append(0)
    items.append(item)
    slots.insert(UInt32(items.count), UInt32(truncatingIfNeeded: hash))
    return true
  }

  private func find(_ name: CName, _ length: Int, _ hash: UInt64) -> Int? {
    let slot = slots.first(UInt32(truncatingIfNeeded: hash)) { matches(Int($0) - 1, name, length) }
    return slot == 0 ? nil : Int(slot) - 1
  }

  private static func hash(_ key: UnsafeRawBufferPointer) -> UInt64 {
    var hasher = Hasher()
    hasher.combine(bytes: key)
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }

  private func matches(_ index: Int, _ name: CName, _ length: Int) -> Bool {
    let item = items[index]
    guard Int(item.length) == length else { return false }
    return bytes.withUnsafeBytes {
      memcmp($0.baseAddress.unsafelyUnwrapped + Int(item.start), name, length) == 0
    }
  }
}
