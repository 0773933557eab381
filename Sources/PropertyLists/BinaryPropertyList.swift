/// A binary property list: objects, a table of their offsets, and a trailer of 32 bytes that describes the table.
/// Numbers are big-endian. None of them is trusted.
struct BinaryPropertyList {
  private let bytes: [UInt8]
  /// Where the objects end and the table begins.
  let tableStart: Int
  private let offsetSize: Int
  private let referenceSize: Int
  private let objectCount: Int
  private let root: Int

  private static let headerSize = 8
  private static let trailerSize = 32

  /// nil if the trailer is wrong.
  init?(_ bytes: [UInt8]) {
    let end = bytes.count - Self.trailerSize
    guard bytes.starts(with: "bplist0".utf8), end > Self.headerSize else { return nil }
    self.bytes = bytes
    (offsetSize, referenceSize) = (Int(bytes[end + 6]), Int(bytes[end + 7]))
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
      let count = Self.number(bytes, at: end + 8, size: 8),
      let root = Self.number(bytes, at: end + 16, size: 8),
      let start = Self.number(bytes, at: end + 24, size: 8)
    else { return nil }
    // In this order nothing overflows.
    guard start > Self.headerSize, start <= end, count <= (end - start) / offsetSize, root < count else {
      return nil
    }
    (tableStart, objectCount, self.root) = (start, count, root)
  }

  /// The root; nil if it is not a dictionary, or malformed.
  func dictionary() -> PropertyListDictionary? {
    var decoder = BinaryDecoder(self)
    return decoder.value(root, depth: 1)?.dictionary
  }

  // MARK: - Objects

  struct Object {
    /// The upper half of the marker.
    let kind: UInt8
    /// The number of elements.
    let count: Int
    /// The offset of the first element.
    let start: Int
  }

  /// The offset of an object; nil if it exceeds `Int`.
  func offset(of number: Int) -> Int? {
    Self.number(bytes, at: tableStart + number * offsetSize, size: offsetSize)
  }

  /// - Returns: nil if the object, its marker or its count is not in the file.
  func object(at offset: Int) -> Object? {
    guard (Self.headerSize..<tableStart).contains(offset) else { return nil }
    let (kind, short) = (bytes[offset] >> 4, Int(bytes[offset] & 0xF))
    // The lower half of a scalar's marker is not always a count.
    if short < 0xF || kind < 4 { return Object(kind: kind, count: short, start: offset + 1) }
    // An integer object follows: 0x10 and the exponent of its size.
    guard offset + 1 < tableStart, bytes[offset + 1] >> 4 == 1, bytes[offset + 1] & 0xF <= 3 else {
      return nil
    }
    let size = 1 << Int(bytes[offset + 1] & 0xF)
    guard size <= tableStart - offset - 2, let count = Self.number(bytes, at: offset + 2, size: size) else {
      return nil
    }
    return Object(kind: kind, count: count, start: offset + 2 + size)
  }

  /// The number of elements, if that many of the given size lie within the objects.
  func size(of object: Object, unit: Int) -> Int? {
    object.count <= (tableStart - object.start) / unit ? object.count : nil
  }

  /// The numbers of an array's elements, or of a dictionary's keys and then its values; nil if one does not exist.
  func references(of object: Object) -> [Int]? {
    let perElement = object.kind == 0xD ? 2 : 1
    guard let count = size(of: object, unit: perElement * referenceSize) else { return nil }
    var numbers: [Int] = []
    numbers.reserveCapacity(count * perElement)
    for index in 0..<count * perElement {
      let offset = object.start + index * referenceSize
      guard let number = Self.number(bytes, at: offset, size: referenceSize), number < objectCount else {
        return nil
      }
      numbers.append(number)
    }
    return numbers
  }

  /// The bytes of a scalar; nil if they do not lie within the objects.
  func content(of object: Object, count: Int) -> ArraySlice<UInt8>? {
    guard count <= tableStart - object.start else { return nil }
    return bytes[object.start..<object.start + count]
  }

  /// A big-endian number; nil if it exceeds `Int`.
  private static func number(_ bytes: [UInt8], at offset: Int, size: Int) -> Int? {
    var value: UInt64 = 0
    for byte in bytes[offset..<offset + size] { value = value << 8 | UInt64(byte) }
    return Int(exactly: value)
  }
}
