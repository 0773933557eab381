import Glibc
import Posix

/// The inode numbers (`st_ino`) of the mount.
///
/// - A non-directory's number is derived from its device and inode number, so that it survives FORGET and is
///   equal for all hard links. Bits 48 to 62 hold the index of the device, 0 for the first one. Inode numbers
///   that do not fit into the lower bits are replaced by a hash of both. Where another known file has that number
///   the next free one is taken, so that only numbers that collide depend on which file came first.
/// - A directory's number is a hash of its merged path, with bit 63 set. Among n directories two share a number
///   with a probability of n² / 2⁶⁴.
final class InodeNumbers: Sendable {
  private struct BackingInode: Hashable {
    let device: UInt64
    let inode: UInt64
  }
  private struct State {
    /// The index of each device but the first.
    var indexes: [UInt64: UInt64] = [:]
    var firstDevice: UInt64?
    /// The files that have hashed numbers, by number.
    var owners: [UInt64: BackingInode] = [:]
    /// The numbers that are not the hash of their file.
    var displaced: [BackingInode: UInt64] = [:]
    var limit: Int
  }

  static let root: UInt64 = 1
  /// Smaller numbers are reserved for entries that no layer has.
  private static let reserved: UInt64 = 16
  private static let inodeBits: UInt64 = 48
  private static let lastIndex: UInt64 = 0x7FFF

  private let state: Locked<State>
  private let smallestLimit: Int
  private let memory: NodeMemory?

  /// - Parameters:
  ///   - limit: how many hashed numbers are kept, at least, before those of unknown files are dropped.
  ///   - memory: where devices are recorded, and from where those of a predecessor are restored.
  init(limit: Int = 1 << 16, memory: NodeMemory? = nil) {
    smallestLimit = limit
    self.memory = memory
    var state = State(limit: limit)
    for device in memory?.recordedDevices ?? [] { _ = Self.index(of: device, &state, nil) }
    for slot in 1..<max(memory?.slotCount ?? 1, 1) {
      if let record = memory?[slot], record.kind != nil { Self.restore(record, &state) }
    }
    self.state = Locked(state)
  }

  private static func restore(_ record: NodeRecord, _ state: inout State) {
    let number = record.inodeNumber
    guard record.kind != .directory, isHashed(number) else { return }
    let key = BackingInode(device: record.identity.device, inode: record.identity.inode)
    state.owners[number] = key
    let mask: UInt64 = 1 << inodeBits - 1
    if number & mask != mixed(mixed(key.inode) ^ key.device) & mask { state.displaced[key] = number }
  }

  func file(device: UInt64, inode: UInt64) -> UInt64 {
    state.withLock { state in
      if inode >= Self.reserved, inode >> Self.inodeBits == 0,
        let index = Self.index(of: device, &state, memory)
      {
        return index << Self.inodeBits | inode
      }
      return Self.hashed(BackingInode(device: device, inode: inode), &state)
    }
  }

  /// Whether so many hashed numbers are kept that those of unknown files should be dropped.
  var isCrowded: Bool { state.withLock { $0.owners.count > $0.limit } }

  /// Drops the hashed numbers that no node has. Their files get the same ones again, unless they collide.
  /// - Parameter live: the numbers of all nodes; others may be among them.
  func drop(except live: Set<UInt64>) {
    state.withLock { state in
      state.owners = state.owners.filter { live.contains($0.key) }
      state.displaced = state.displaced.filter { live.contains($0.value) }
      // At least as many numbers as are left come before the next time, so that the cost of each is constant.
      state.limit = max(smallestLimit, 2 * state.owners.count)
    }
  }

  var hashedCount: Int { state.withLock { $0.owners.count } }

  static func isHashed(_ number: UInt64) -> Bool { number >> inodeBits == lastIndex }

  /// - Returns: nil if there are too many devices.
  private static func index(of device: UInt64, _ state: inout State, _ memory: NodeMemory?) -> UInt64? {
    if state.firstDevice == device { return 0 }
    if state.firstDevice == nil {
      state.firstDevice = device
      memory?.add(device: device)
      return 0
    }
    if let index = state.indexes[device] { return index }
    let index = UInt64(state.indexes.count + 1)
    if index >= lastIndex { return nil }
    state.indexes[device] = index
    memory?.add(device: device)
    return index
  }

  private static func hashed(_ key: BackingInode, _ state: inout State) -> UInt64 {
    if let number = state.displaced[key] { return number }
    let mask: UInt64 = 1 << inodeBits - 1
    let hash = mixed(mixed(key.inode) ^ key.device)
    var number = hash & mask | lastIndex << inodeBits
    var isDisplaced = false
    while let owner = state.owners[number] {
      if owner == key { return number }
      number = (number + 1) & mask | lastIndex << inodeBits
      isDisplaced = true
    }
    state.owners[number] = key
    if isDisplaced { state.displaced[key] = number }
    return number
  }

  /// A bijection that spreads its argument over all bits.
  private static func mixed(_ value: UInt64) -> UInt64 {
    var hash = value &+ 0x9E37_79B9_7F4A_7C15
    hash = (hash ^ (hash >> 32)) &* 0xD6E8_FEB8_6659_FD93
    hash = (hash ^ (hash >> 32)) &* 0xD6E8_FEB8_6659_FD93
    return hash ^ (hash >> 32)
  }

  static func directory(parent: UInt64, name: CName) -> UInt64 {
    directory(parent: parent, name: UnsafeRawBufferPointer(start: name, count: strlen(name)))
  }

  static func directory(parent: UInt64, name: some Sequence<UInt8>) -> UInt64 {
    // FNV-1a over the parent's number and the name, with a finalizer that spreads it over all bits.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    func add(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    for shift in stride(from: 0, to: 64, by: 8) { add(UInt8(truncatingIfNeeded: parent >> UInt64(shift))) }
    for byte in name { add(byte) }
    hash = (hash ^ (hash >> 32)) &* 0xD6E8_FEB8_6659_FD93
    hash = (hash ^ (hash >> 32)) &* 0xD6E8_FEB8_6659_FD93
    return (hash ^ (hash >> 32)) | 1 << 63
  }
}
