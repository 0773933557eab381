import Glibc

/// The nodes' names, in one piece of memory: an array for each would take about 40 bytes more.
///
/// A name takes its length (two bytes) and its bytes, in units of 4. What one leaves is given to the next that
/// takes as many units, so that names which come and go take no more than was ever needed at a time.
struct NameArena {
  private static let unit = 4
  private var bytes: [UInt8] = Array(repeating: 0, count: unit)
  /// By the number of units, the first free room of that size; it begins with the place of the next. 0 ends.
  private var free: [UInt32] = []

  /// How many bytes there are, in use or not.
  var size: Int { bytes.count }

  /// Adds a name; answers its place, which is never 0: the empty name is there.
  mutating func add(_ name: [UInt8]) -> UInt32 {
    let units = Self.units(name.count)
    var place = units < free.count ? free[units] : 0
    if place != 0 {
      free[units] = load(place)
    } else {
      place = UInt32(bytes.count / Self.unit)
      bytes.append(contentsOf: repeatElement(0, count: units * Self.unit))
    }
    let start = Int(place) * Self.unit
    bytes.withUnsafeMutableBytes { all in
      all.storeBytes(of: UInt16(name.count), toByteOffset: start, as: UInt16.self)
      UnsafeMutableRawBufferPointer(rebasing: all[(start + 2)...]).copyBytes(from: name)
    }
    return place
  }

  /// Takes a name out.
  mutating func remove(_ place: UInt32) {
    if place == 0 { return }
    let units = Self.units(withName(at: place) { $0.count })
    while free.count <= units { free.append(0) }
    let next = free[units]
    bytes.withUnsafeMutableBytes {
      $0.storeBytes(of: next, toByteOffset: Int(place) * Self.unit, as: UInt32.self)
    }
    free[units] = place
  }

  /// Runs the body with the name at a place.
  @inline(__always)
  func withName<Result>(at place: UInt32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    bytes.withUnsafeBytes { all in
      let start = Int(place) * Self.unit
      let count = Int(all.load(fromByteOffset: start, as: UInt16.self))
      return body(UnsafeRawBufferPointer(rebasing: all[(start + 2)..<(start + 2 + count)]))
    }
  }

  /// The name at a place.
  func name(at place: UInt32) -> [UInt8] { withName(at: place) { Array($0) } }

  /// Whether it is this name that is at a place.
  func has(_ name: [UInt8], at place: UInt32) -> Bool {
    withName(at: place) { present in
      name.withUnsafeBytes { name in
        guard name.count == present.count, let left = name.baseAddress, let right = present.baseAddress else {
          return name.isEmpty && present.isEmpty
        }
        return memcmp(left, right, name.count) == 0
      }
    }
  }

  private func load(_ place: UInt32) -> UInt32 {
    bytes.withUnsafeBytes { $0.load(fromByteOffset: Int(place) * Self.unit, as: UInt32.self) }
  }

  private static func units(_ length: Int) -> Int { (2 + length + unit - 1) / unit }
}
