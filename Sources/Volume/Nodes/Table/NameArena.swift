import Glibc

/// The names of all nodes in one allocation; an array each would take about 40 bytes more.
///
/// A name is its length in two bytes followed by its bytes, padded to units of 4 bytes; its index counts units.
/// The space of a removed name is reused for names of as many units, so that the arena does not grow while
/// names come and go.
struct NameArena {
  private static let unit = 4
  private var bytes: [UInt8] = Array(repeating: 0, count: unit)
  /// The heads of the free lists by number of units; 0 ends a list. A free space begins with the next index.
  private var free: [UInt32] = []

  var size: Int { bytes.count }

  /// - Returns: the index of the name; never 0, which is the index of the empty name.
  mutating func add(_ name: [UInt8]) -> UInt32 {
    let units = Self.units(name.count)
    var index = units < free.count ? free[units] : 0
    if index != 0 {
      free[units] = bytes.withUnsafeBytes {
        $0.load(fromByteOffset: Int(index) * Self.unit, as: UInt32.self)
      }
    } else {
      index = UInt32(bytes.count / Self.unit)
      bytes.append(contentsOf: repeatElement(0, count: units * Self.unit))
    }
    let start = Int(index) * Self.unit
    bytes.withUnsafeMutableBytes { all in
      all.storeBytes(of: UInt16(name.count), toByteOffset: start, as: UInt16.self)
      UnsafeMutableRawBufferPointer(rebasing: all[(start + 2)...]).copyBytes(from: name)
    }
    return index
  }

  mutating func remove(_ index: UInt32) {
    if index == 0 { return }
    let units = Self.units(withName(at: index) { $0.count })
    while free.count <= units { free.append(0) }
    let next = free[units]
    bytes.withUnsafeMutableBytes {
      $0.storeBytes(of: next, toByteOffset: Int(index) * Self.unit, as: UInt32.self)
    }
    free[units] = index
  }

  @inline(__always)
  func withName<Result>(at index: UInt32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    bytes.withUnsafeBytes { all in
      let start = Int(index) * Self.unit
      let count = Int(all.load(fromByteOffset: start, as: UInt16.self))
      return body(UnsafeRawBufferPointer(rebasing: all[(start + 2)..<(start + 2 + count)]))
    }
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
