import Containers
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
  /// The names' hashes, by item; the index has them truncated.
  private var hashes: [UInt64] = []
  /// Of item `i`, the slot is `i + 1`.
  private var slots = HashIndex()

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

  /// A hash of an item's name: the same for a name in all listings of this process.
  public func hash(at index: Int) -> UInt64 { hashes[index] }

  /// The place among the items of a name; nil if it is not listed.
  public func index(of name: CName, length: Int) -> Int? {
    find(name, length, Self.hash(UnsafeRawBufferPointer(start: name, count: length)))
  }

  /// The place among the items of another listing's item's name.
  public func index(of item: Item, in other: Listing) -> Int? {
    other.withName(of: item) { index(of: $0, length: Int(item.length)) }
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
    let hash = Self.hash(key)
    if find(name, length, hash) != nil { return false }
    let item = Item(
      start: UInt32(bytes.count), length: UInt8(length), kind: kind, layer: UInt16(layer), inode: inode,
      device: device)
    bytes.append(contentsOf: key)
    bytes.append(0)
    items.append(item)
    hashes.append(hash)
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
