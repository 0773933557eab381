import Glibc
import Layers
import Posix

/// The inode numbers (`st_ino`) of the mount. They have 32 bits, so that programs of 32 bits without large-file support
/// can list directories and call stat(2).
///
/// - A file's number is derived from its device and inode number, so that it survives FORGET and is equal for all
///   hard links. The numbers below 2³¹ are divided into pages of 4,096. A page is given to that many inode numbers of
///   a device when the first of them is met: the page with the same numbers if it is free. So the files of the first
///   device have their own inode numbers, and what depends on the order is one page number for many files.
/// - A directory's number is a hash of its merged path in the upper half. So is that of a file whose inode number is
///   none that a file system counts up to, or which is met when all pages are given away.
///   Where another known entry has that number, a free one is taken.
///
/// Pages and numbers that depend on the order are recorded for a successor.
final class InodeNumbers: Sendable {
  /// Consecutive inode numbers of a device.
  private struct Chunk: Hashable {
    let device: UInt64
    let index: UInt64
  }
  private struct State {
    var pages: [Chunk: UInt64] = [:]
    var usedPages: Set<UInt64> = []
    /// No page from here on is free, unless its turn has not come.
    var firstTaken = pageCount
    /// The chunk that was used last.
    var last: (chunk: Chunk, page: UInt64)?
    var hashed: HashedNumbers
  }

  static let root: UInt64 = 1
  /// Smaller numbers are reserved for entries that no layer has.
  private static let reserved: UInt64 = 16
  /// Files have smaller numbers, unless these are hashed.
  private static let firstHashed: UInt64 = 1 << 31
  private static let pageBits: UInt64 = 12
  private static let pageCount = firstHashed >> pageBits
  /// File systems that number their files one by one, or by their places, use fewer bits.
  private static let countedBits: UInt64 = 44
  /// The chunk of the reserved numbers, which a device can have.
  private static let smallIndex = UInt64.max

  private let state: Locked<State>
  private let memory: NodeMemory?

  /// - Parameters:
  ///   - limit: how many hashed numbers are kept, at least, before those of unknown entries are dropped.
  ///   - memory: where what depends on the order is recorded, and from where that of a predecessor is restored.
  ///   - foldsNames: whether case does not count in names.
  init(limit: Int = 1 << 16, memory: NodeMemory? = nil, foldsNames: Bool = false) {
    self.memory = memory
    var state = State(hashed: HashedNumbers(limit: limit))
    for assigned in memory?.assignedNumbers ?? [] {
      if let device = assigned.device {
        state.pages[Chunk(device: device, index: assigned.key)] = assigned.number
        state.usedPages.insert(assigned.number)
      } else {
        state.hashed.restore(assigned.key, assigned.number)
      }
    }
    if let memory { Self.restore(memory, foldsNames: foldsNames, &state.hashed) }
    self.state = Locked(state)
  }

  /// Restores the hashed numbers of the nodes.
  private static func restore(_ memory: NodeMemory, foldsNames: Bool, _ hashed: inout HashedNumbers) {
    let names = NameArena(shared: memory.names)
    for slot in NodeTable.root + 1..<max(memory.slotCount, NodeTable.root + 1) {
      let record = memory[slot]
      guard record.kind != nil, isHashed(record.inodeNumber) else { continue }
      guard record.kind == .directory else {
        hashed.restore(key(of: record.identity), record.inodeNumber)
        continue
      }
      let parent = record.parent == NodeTable.root ? root : memory[record.parent].inodeNumber
      let name = names.name(at: record.name)
      hashed.restore(key(of: foldsNames ? NameFolding.key(of: name) : name, in: parent), record.inodeNumber)
    }
  }

  // MARK: - Numbers

  func file(device: UInt64, inode: UInt64) -> UInt64 {
    state.withLock { state in
      if let page = page(device, inode, &state) {
        return page << Self.pageBits | inode & (1 << Self.pageBits - 1)
      }
      return hashed(Self.key(device: device, inode: inode), &state)
    }
  }

  /// - Parameters:
  ///   - parent: the number of the directory above.
  ///   - name: where case does not count, what its spellings have in common.
  func directory(parent: UInt64, name: some Sequence<UInt8>) -> UInt64 {
    state.withLock { hashed(Self.key(of: name, in: parent), &$0) }
  }

  private func hashed(_ key: UInt64, _ state: inout State) -> UInt64 {
    let (number, isDisplaced) = state.hashed.number(for: key)
    if isDisplaced { memory?.add(NodeMemory.AssignedNumber(device: nil, key: key, number: number)) }
    return number
  }

  /// - Returns: nil if the inode number has to be hashed.
  private func page(_ device: UInt64, _ inode: UInt64, _ state: inout State) -> UInt64? {
    if inode >> Self.countedBits != 0 { return nil }
    let index = inode < Self.reserved ? Self.smallIndex : inode >> Self.pageBits
    let chunk = Chunk(device: device, index: index)
    if let last = state.last, last.chunk == chunk { return last.page }
    guard let page = state.pages[chunk] ?? add(chunk, &state) else { return nil }
    state.last = (chunk, page)
    return page
  }

  /// - Returns: nil if there is no page left, or no room to record it.
  private func add(_ chunk: Chunk, _ state: inout State) -> UInt64? {
    var page = chunk.index
    if page >= Self.pageCount || state.usedPages.contains(page) {
      // From the top: the numbers at the bottom are those that most files have themselves.
      while state.firstTaken > 1, state.usedPages.contains(state.firstTaken - 1) { state.firstTaken -= 1 }
      // The first page has the reserved numbers.
      if state.firstTaken <= 1 { return nil }
      page = state.firstTaken - 1
    }
    let assigned = NodeMemory.AssignedNumber(device: chunk.device, key: chunk.index, number: page)
    if memory?.add(assigned) == false { return nil }
    state.pages[chunk] = page
    state.usedPages.insert(page)
    return page
  }

  // MARK: - Hashed numbers

  /// Whether so many hashed numbers are kept that those of unknown entries should be dropped.
  var isCrowded: Bool { state.withLock { $0.hashed.isCrowded } }

  /// Drops hashed numbers that no node has and that were not asked for lately. Their entries get the same ones again,
  /// unless they collide.
  /// - Parameter live: the numbers of all nodes; others may be among them.
  func drop(except live: Set<UInt64>) { state.withLock { $0.hashed.drop(except: live) } }

  /// How many there are, for tests, and how many of them are not the hashes of their entries.
  var hashedCount: Int { state.withLock { $0.hashed.count } }
  var displacedCount: Int { state.withLock { $0.hashed.displacedCount } }

  static func isHashed(_ number: UInt64) -> Bool { number >= firstHashed }

  private static func key(of identity: FileIdentity) -> UInt64 {
    key(device: identity.device, inode: identity.inode)
  }

  private static func key(device: UInt64, inode: UInt64) -> UInt64 { mixed(mixed(inode) ^ device) }

  /// FNV-1a over the parent's number and the name, with a finalizer that spreads it over all bits.
  private static func key(of name: some Sequence<UInt8>, in parent: UInt64) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    func add(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    for shift in stride(from: 0, to: 64, by: 8) { add(UInt8(truncatingIfNeeded: parent >> UInt64(shift))) }
    for byte in name { add(byte) }
    return mixed(hash)
  }

  /// A bijection that spreads its argument over all bits.
  private static func mixed(_ value: UInt64) -> UInt64 {
    var hash = value &+ 0x9E37_79B9_7F4A_7C15
    hash = (hash ^ (hash >> 32)) &* 0xD6E8_FEB8_6659_FD93
    hash = (hash ^ (hash >> 32)) &* 0xD6E8_FEB8_6659_FD93
    return hash ^ (hash >> 32)
  }
}
