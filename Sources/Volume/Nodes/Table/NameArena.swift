import Glibc

/// The names of all nodes in one allocation; an array each would take about 40 bytes more.
///
/// A name is its length in two bytes followed by its bytes, padded to units of 4 bytes; its index counts units.
/// The space of a removed name is reused for names of as many units, so that the arena does not grow while
/// names come and go.
///
/// Invariant: a name is in memory before anything can refer to it, and its space is reused only after `reclaim`, when
/// nothing refers to it any more. So records of nodes in shared memory have their names at any moment. One thread uses
/// it at a time.
struct NameArena: @unchecked Sendable {
  private static let unit = 4
  private let memory: ArenaMemory
  private var base: UnsafeMutableRawPointer
  /// Bytes.
  private(set) var size = unit
  /// The heads of the free lists by number of units; 0 ends a list. A free space begins with the next index.
  private var free: [UInt32] = []
  /// Names that were removed since the last `reclaim`.
  private var removed: [UInt32] = []

  /// - Parameter shared: where the names have room; nil for memory of its own.
  init(shared: UnsafeMutableRawBufferPointer? = nil) {
    memory = ArenaMemory(shared)
    base = memory.base
    memory.reserve(Self.unit)
    base = memory.base
  }

  /// - Returns: the index of the name; never 0, which is the index of the empty name.
  mutating func add(_ name: [UInt8]) -> UInt32 {
    let units = Self.units(name.count)
    var index = units < free.count ? free[units] : 0
    if index != 0 {
      free[units] = (base + Int(index) * Self.unit).load(as: UInt32.self)
    } else {
      index = UInt32(size / Self.unit)
      size += units * Self.unit
      memory.reserve(size)
      base = memory.base
    }
    let start = base + Int(index) * Self.unit
    start.storeBytes(of: UInt16(name.count), as: UInt16.self)
    name.withUnsafeBytes { bytes in
      if let address = bytes.baseAddress { memcpy(start + 2, address, bytes.count) }
    }
    return index
  }

  /// Removes a name; its space is free from the next `reclaim` on.
  mutating func remove(_ index: UInt32) { if index != 0 { removed.append(index) } }

  mutating func reclaim() {
    for index in removed { release(index, units: Self.units(withName(at: index) { $0.count })) }
    removed.removeAll(keepingCapacity: true)
  }

  private mutating func release(_ index: UInt32, units: Int) {
    while free.count <= units { free.append(0) }
    (base + Int(index) * Self.unit).storeBytes(of: free[units], as: UInt32.self)
    free[units] = index
  }

  /// Takes over the names that a former process has written; all other space below them is free.
  mutating func adopt(_ names: [UInt32]) {
    var end = UInt32(1)
    for index in names.sorted() where index >= end {
      releaseGap(end..<index)
      size = Int(index) * Self.unit
      end = index + UInt32(Self.units(withName(at: index) { $0.count }))
    }
    size = Int(end) * Self.unit
  }

  private mutating func releaseGap(_ gap: Range<UInt32>) {
    var start = gap.lowerBound
    while start < gap.upperBound {
      let units = min(gap.upperBound - start, UInt32(Self.units(255)))
      release(start, units: Int(units))
      start += units
    }
  }

  @inline(__always)
  func withName<Result>(at index: UInt32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    let start = base + Int(index) * Self.unit
    let count = Int(start.load(as: UInt16.self))
    return body(UnsafeRawBufferPointer(start: start + 2, count: count))
  }

  func name(at index: UInt32) -> [UInt8] { withName(at: index) { Array($0) } }

  func has(_ name: [UInt8], at index: UInt32) -> Bool {
    withName(at: index) { present in
      name.withUnsafeBytes { name in
        guard name.count == present.count, let left = name.baseAddress, let right = present.baseAddress else {
          return name.isEmpty && present.isEmpty
        }
        return memcmp(left, right, name.count) == 0
      }
    }
  }

  private static func units(_ length: Int) -> Int { (2 + length + unit - 1) / unit }
}

/// The memory of a `NameArena`: a shared window, which is as large as it will ever be, or memory that grows.
private final class ArenaMemory: @unchecked Sendable {
  private(set) var base: UnsafeMutableRawPointer
  private var capacity: Int
  private let isShared: Bool

  init(_ shared: UnsafeMutableRawBufferPointer?) {
    isShared = shared != nil
    capacity = shared?.count ?? 4096
    base = shared?.baseAddress ?? .allocate(byteCount: 4096, alignment: 16)
    if shared == nil { base.initializeMemory(as: UInt8.self, repeating: 0, count: 4096) }
  }

  deinit { if !isShared { base.deallocate() } }

  func reserve(_ size: Int) {
    if size <= capacity { return }
    let larger = UnsafeMutableRawPointer.allocate(byteCount: 2 * capacity, alignment: 16)
    larger.copyMemory(from: base, byteCount: capacity)
    base.deallocate()
    (base, capacity) = (larger, 2 * capacity)
  }
}
