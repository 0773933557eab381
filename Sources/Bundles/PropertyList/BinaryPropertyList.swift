/// A binary property list: objects, a table of their offsets, and a trailer of 32 bytes that describes the table.
/// Numbers are big-endian. None of them is trusted.
struct BinaryPropertyList {
  private let bytes: [UInt8]
  /// Where the objects end and the table begins.
  private let tableStart: Int
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

  /// The strings of the root; nil if it is not a dictionary, or malformed.
  func strings(for keys: [String]) -> [String: String]? {
    guard let dictionary = object(root), dictionary.kind == 0xD,
      let count = size(of: dictionary, unit: 2 * referenceSize)
    else { return nil }
    // Many references may denote one long object, so that values are decoded only once each.
    var values: [Int?] = Array(repeating: nil, count: keys.count)
    for index in 0..<count {
      let start = dictionary.start + index * referenceSize
      guard let key = reference(at: start).flatMap(string),
        let value = reference(at: start + count * referenceSize)
      else { return nil }
      if let wanted = keys.firstIndex(where: { isEqual(key, $0) }) { values[wanted] = value }
    }
    var found: [String: String] = [:]
    for (key, value) in zip(keys, values) { found[key] = value.flatMap(string).flatMap(decoded) }
    return found
  }

  // MARK: - Objects

  private struct Object {
    /// The upper half of the marker.
    let kind: UInt8
    /// The number of elements.
    let count: Int
    /// The offset of the first element.
    let start: Int
  }

  /// - Returns: nil if the object, its marker or its count is not in the file.
  private func object(_ number: Int) -> Object? {
    guard let offset = Self.number(bytes, at: tableStart + number * offsetSize, size: offsetSize),
      (Self.headerSize..<tableStart).contains(offset)
    else { return nil }
    let (kind, short) = (bytes[offset] >> 4, Int(bytes[offset] & 0xF))
    if short < 0xF { return Object(kind: kind, count: short, start: offset + 1) }
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
  private func size(of object: Object, unit: Int) -> Int? {
    object.count <= (tableStart - object.start) / unit ? object.count : nil
  }

  /// The object number at an offset.
  private func reference(at offset: Int) -> Int? {
    Self.number(bytes, at: offset, size: referenceSize).flatMap { $0 < objectCount ? $0 : nil }
  }

  /// A big-endian number; nil if it exceeds `Int`.
  private static func number(_ bytes: [UInt8], at offset: Int, size: Int) -> Int? {
    var value: UInt64 = 0
    for byte in bytes[offset..<offset + size] { value = value << 8 | UInt64(byte) }
    return Int(exactly: value)
  }

  // MARK: - Strings

  /// ASCII (kind 5), UTF-16 (6) or UTF-8 (7).
  private func string(_ number: Int) -> Object? {
    guard let object = object(number), (5...7).contains(object.kind),
      size(of: object, unit: object.kind == 6 ? 2 : 1) != nil
    else { return nil }
    return object
  }

  /// Whether a string has the given text, without decoding one of another length.
  private func isEqual(_ string: Object, _ text: String) -> Bool {
    guard string.count == (string.kind == 6 ? text.utf16.count : text.utf8.count) else { return false }
    return decoded(string) == text
  }

  /// - Returns: nil if the string is malformed.
  private func decoded(_ string: Object) -> String? {
    if string.kind != 6 {
      return String(validating: bytes[string.start..<string.start + string.count], as: UTF8.self)
    }
    return String(
      validating: (0..<string.count).lazy.map { index in
        UInt16(bytes[string.start + 2 * index]) << 8 | UInt16(bytes[string.start + 2 * index + 1])
      }, as: UTF16.self)
  }
}
