import Glibc
import Layers
import Posix
import Synchronization

/// The record of a node table in shared memory, written so that a successor can read it whenever the writer dies.
///
/// Records are changed in transactions: the new ones are written to a journal, then its size, which commits it, then the
/// records, then the size 0. A successor repeats what a journal with a size has. A process that is killed leaves its
/// writes in their order, so no more is needed than that the compiler keeps it.
struct NodeMemory: @unchecked Sendable {
  private typealias Region = SharedRegions
  /// The size of the memory in bytes.
  static let size = SharedRegions.size

  struct Header: BitwiseCopyable {
    var slots: UInt32 = 0
    var links: UInt32 = 0
    var numbers: UInt32 = 0
    /// The records in the journal, once they are all there.
    var committed: UInt32 = 0
    /// Whether there are more nodes than the memory has room for.
    var isIncomplete: UInt32 = 0
    /// Whether a process has used the memory, so that the kernel may know the root at least.
    var wasUsed: UInt32 = 0
    /// How many spellings were added; the places below that number are used.
    var spellings: UInt32 = 0
  }

  /// A further name of a file with several hard links.
  struct Link: BitwiseCopyable {
    /// 0 in a free place.
    var slot: UInt32 = 0
    /// The index in the `NameArena`.
    var name: UInt32 = 0
    var parent: UInt64 = 0
  }

  /// A page of inode numbers, or an inode number, that depends on which file came first.
  struct AssignedNumber: BitwiseCopyable {
    /// `UInt64.max` where `key` is that of a hashed number.
    private var pageDevice: UInt64
    let key: UInt64
    let number: UInt64

    init(device: UInt64?, key: UInt64, number: UInt64) {
      (pageDevice, self.key, self.number) = (device ?? .max, key, number)
    }

    /// nil for a hashed number.
    var device: UInt64? { pageDevice == .max ? nil : pageDevice }
  }

  struct Change: BitwiseCopyable {
    var slot: UInt32 = 0
    var record = NodeRecord()
  }

  static let journalCapacity = 512
  private static let slotCapacity = min(
    Region.nodes.count / MemoryLayout<NodeRecord>.stride,
    Region.fingerprints.count / MemoryLayout<Fingerprint>.stride)

  let memory: SharedMemory
  /// The node table's lock guards it, but for what the next two point to.
  let header: UnsafeMutablePointer<Header>
  /// `Header.numbers` and `Header.spellings`, which have locks of their own. An access by way of `header` would be one to all
  /// of it, thus a race.
  private let numberCount: UnsafeMutablePointer<UInt32>
  let spellingCount: UnsafeMutablePointer<UInt32>
  let journal: UnsafeMutablePointer<Change>
  let records: UnsafeMutablePointer<NodeRecord>
  private let links: UnsafeMutablePointer<Link>
  private let fingerprints: UnsafeMutablePointer<Fingerprint>
  private let numbers: UnsafeMutablePointer<AssignedNumber>
  let spellings: UnsafeMutableRawPointer
  /// The IDs of layers by index, and the other way round.
  private let ids: [LayerID]
  private let indexes: [UInt16]

  /// - Parameters:
  ///   - memory: of at least `size` bytes; zero, or what a former process has written.
  ///   - ids: of the layers, by index; by default their indexes.
  init(_ memory: SharedMemory, layers ids: [LayerID] = []) {
    self.memory = memory
    self.ids = ids
    indexes = Self.indexes(of: ids)
    header = memory.values(of: Header.self, at: Region.header.lowerBound)
    func count(_ field: PartialKeyPath<Header>) -> UnsafeMutablePointer<UInt32> {
      guard let offset = MemoryLayout<Header>.offset(of: field) else {
        preconditionFailure("a stored property has an offset")
      }
      return memory.values(of: UInt32.self, at: Region.header.lowerBound + offset)
    }
    (numberCount, spellingCount) = (count(\.numbers), count(\.spellings))
    journal = memory.values(of: Change.self, at: Region.journal.lowerBound)
    records = memory.values(of: NodeRecord.self, at: Region.nodes.lowerBound)
    links = memory.values(of: Link.self, at: Region.links.lowerBound)
    fingerprints = memory.values(of: Fingerprint.self, at: Region.fingerprints.lowerBound)
    numbers = memory.values(of: AssignedNumber.self, at: Region.inodeNumbers.lowerBound)
    spellings = memory.base + Region.spellings.lowerBound
    redo()
  }

  /// The names that records refer to.
  var names: UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(start: memory.base + Region.names.lowerBound, count: Region.names.count)
  }

  /// - Returns: whether a predecessor has used the memory.
  func use() -> Bool {
    defer { header.pointee.wasUsed = 1 }
    return header.pointee.wasUsed == 1
  }

  /// Whether all nodes are recorded.
  var isComplete: Bool { header.pointee.isIncomplete == 0 }

  // MARK: - Nodes

  /// The slots that were ever used, and slot 0.
  var slotCount: UInt32 { header.pointee.slots }

  subscript(slot: UInt32) -> NodeRecord {
    var record = records[Int(slot)]
    // A layer without index is one that nothing was read from.
    if !indexes.isEmpty { record.layer = indexes[min(Int(record.layer), indexes.count - 1)] }
    return record
  }

  private static func indexes(of ids: [LayerID]) -> [UInt16] {
    guard let last = ids.map(\.place).max() else { return [] }
    var indexes = [UInt16](repeating: 0, count: last + 2)
    for (index, id) in ids.enumerated() { indexes[id.place] = UInt16(index) }
    return indexes
  }

  /// The IDs of the layers that nodes refer to.
  var usedLayers: Set<LayerID> {
    var used: Set<LayerID> = []
    for slot in 0..<slotCount {
      let record = records[Int(slot)]
      // The layer of a directory means nothing.
      if let kind = record.kind, kind != .directory { used.insert(LayerID(rawValue: record.layer)) }
    }
    return used
  }

  /// The descriptors of the files that nodes are pinned to.
  var openFiles: [CInt] {
    (0..<slotCount).compactMap { self[$0].kind != nil && self[$0].file > 0 ? self[$0].file - 1 : nil }
  }

  /// Writes the present states of slots; at once as many as fit into the journal.
  func write(_ slots: [UInt32], of nodes: NodeSlots) {
    if nodes.count > Self.slotCapacity { return header.pointee.isIncomplete = 1 }
    header.pointee.slots = max(header.pointee.slots, UInt32(nodes.count))
    var count = 0
    for slot in slots {
      var record = nodes[Int(slot)].record
      if !ids.isEmpty { record.layer = ids[Int(record.layer)].rawValue }
      if isEqual(&record, records + Int(slot)) { continue }
      journal[count] = Change(slot: slot, record: record)
      count += 1
      if count == Self.journalCapacity {
        commit(count)
        count = 0
      }
    }
    if count > 0 { commit(count) }
  }

  @inline(__always)
  private func isEqual(_ record: inout NodeRecord, _ other: UnsafePointer<NodeRecord>) -> Bool {
    memcmp(&record, other, MemoryLayout<NodeRecord>.size) == 0
  }

  private func commit(_ count: Int) {
    atomicMemoryFence(ordering: .releasing)
    header.pointee.committed = UInt32(count)
    redo()
  }

  private func redo() {
    atomicMemoryFence(ordering: .acquiringAndReleasing)
    for index in 0..<min(Int(header.pointee.committed), Self.journalCapacity) {
      records[Int(journal[index].slot)] = journal[index].record
    }
    atomicMemoryFence(ordering: .releasing)
    header.pointee.committed = 0
  }

  // MARK: - Fingerprints

  /// Of the state of a node's file or directory that the kernel may have cached.
  func fingerprint(of slot: UInt32) -> Fingerprint { fingerprints[Int(slot)] }

  /// Records a state before the kernel learns of it.
  func add(_ fingerprint: Fingerprint, of slot: UInt32) {
    if slot >= Self.slotCapacity { return }
    let present = fingerprints[Int(slot)]
    if present == fingerprint || present == .unknown { return }
    fingerprints[Int(slot)] = present == .none ? fingerprint : .unknown
  }

  /// Replaces what is recorded, once the kernel has nothing older.
  func set(_ fingerprint: Fingerprint, of slot: UInt32) {
    if slot < Self.slotCapacity { fingerprints[Int(slot)] = fingerprint }
  }

  // MARK: - Hard links

  var linkCount: UInt32 { header.pointee.links }

  func link(at index: UInt32) -> Link { links[Int(index)] }

  func write(_ link: Link, at index: UInt32) {
    header.pointee.links = max(header.pointee.links, index + 1)
    links[Int(index)].name = link.name
    links[Int(index)].parent = link.parent
    atomicMemoryFence(ordering: .releasing)
    links[Int(index)].slot = link.slot
  }

  func removeLink(at index: UInt32) { links[Int(index)].slot = 0 }

  // MARK: - Inode numbers

  static let numberCapacity = Region.inodeNumbers.count / MemoryLayout<AssignedNumber>.stride

  /// In the order in which they were assigned.
  var assignedNumbers: [AssignedNumber] { (0..<Int(numberCount.pointee)).map { numbers[$0] } }

  /// - Returns: false if there is no room.
  @discardableResult
  func add(_ assigned: AssignedNumber) -> Bool {
    guard numberCount.pointee < Self.numberCapacity else { return false }
    numbers[Int(numberCount.pointee)] = assigned
    atomicMemoryFence(ordering: .releasing)
    numberCount.pointee += 1
    return true
  }
}
