/// Decodes the objects of a binary property list.
///
/// Objects may overlap, and many references may denote one object. So scalars are decoded once for each offset, their
/// sizes together may not exceed the file, nor may the number of references that are followed.
struct BinaryDecoder {
  private let file: BinaryPropertyList
  private var scalars: [Int: PropertyListValue] = [:]
  private var remainingBytes: Int
  private var remainingReferences: Int
  /// Bounds what hashing the keys takes. A key of many dictionaries is in the file only once.
  private var remainingKeyBytes: Int

  init(_ file: BinaryPropertyList) {
    self.file = file
    remainingBytes = file.tableStart
    remainingReferences = file.tableStart
    remainingKeyBytes = file.tableStart * 32
  }

  /// Decodes an object.
  /// - Returns: nil if the file is malformed beyond this object; `unknown` for a malformed scalar.
  mutating func value(_ number: Int, depth: Int) -> PropertyListValue? {
    guard let offset = file.offset(of: number) else { return .unknown }
    if let known = scalars[offset] { return known }
    guard let object = file.object(at: offset) else { return .unknown }
    switch object.kind {
    case 0xA, 0xD: return collection(object, depth: depth)
    default:
      guard let value = scalar(object) else { return nil }
      scalars[offset] = value
      return value
    }
  }

  private mutating func collection(_ object: BinaryPropertyList.Object, depth: Int) -> PropertyListValue? {
    let perElement = object.kind == 0xD ? 2 : 1
    // A count that the file cannot hold is that object's defect; a reference to nothing is the file's.
    guard let count = file.size(of: object, unit: perElement) else { return .unknown }
    guard depth <= PropertyListBuilder.maxDepth, count * perElement <= remainingReferences,
      let numbers = file.references(of: object)
    else { return nil }
    remainingReferences -= numbers.count
    if object.kind == 0xA { return array(numbers, depth: depth) }
    return dictionary(keys: numbers[..<count], values: numbers[count...], depth: depth)
  }

  private mutating func array(_ numbers: [Int], depth: Int) -> PropertyListValue? {
    var values: [PropertyListValue] = []
    for number in numbers {
      guard let value = value(number, depth: depth + 1) else { return nil }
      values.append(value)
    }
    return .array(values)
  }

  private mutating func dictionary(
    keys: ArraySlice<Int>, values: ArraySlice<Int>, depth: Int
  ) -> PropertyListValue? {
    var dictionary = PropertyListDictionary()
    // By the offset of the key: those that repeat are neither compared nor hashed.
    var indexes: [Int: Int] = [:]
    for (keyNumber, number) in zip(keys, values) {
      guard let offset = file.offset(of: keyNumber), let value = value(number, depth: depth + 1) else {
        return nil
      }
      if let index = indexes[offset] {
        dictionary.members[index].value = value
        continue
      }
      guard let key = self.value(keyNumber, depth: depth + 1)?.string, key.utf8.count <= remainingKeyBytes
      else {
        return nil
      }
      remainingKeyBytes -= key.utf8.count
      indexes[offset] = dictionary.members.count
      dictionary.members.append(PropertyListDictionary.Member(key: key, value: value))
    }
    return .dictionary(dictionary)
  }

  // MARK: - Scalars

  /// - Returns: nil if the scalars are larger than the file.
  private mutating func scalar(_ object: BinaryPropertyList.Object) -> PropertyListValue? {
    let size: Int
    switch object.kind {
    case 1, 2, 3: size = object.count <= 4 ? 1 << object.count : 0
    case 4, 5, 7: size = object.count
    case 6 where object.count <= file.tableStart: size = 2 * object.count
    case 0: return object.count == 8 || object.count == 9 ? .boolean(object.count == 9) : .unknown
    default: return .unknown
    }
    guard let content = file.content(of: object, count: size) else { return .unknown }
    guard size <= remainingBytes else { return nil }
    remainingBytes -= size
    return Self.value(kind: object.kind, content)
  }

  private static func value(kind: UInt8, _ content: ArraySlice<UInt8>) -> PropertyListValue {
    switch kind {
    case 1: return integer(content)
    case 2 where content.count == 4:
      return .real(Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits(content)))))
    case 2 where content.count == 8: return .real(Double(bitPattern: bits(content)))
    case 3 where content.count == 8: return .date(Double(bitPattern: bits(content)))
    case 4: return .data(Array(content))
    case 5, 7: return String(validating: content, as: UTF8.self).map(PropertyListValue.string) ?? .unknown
    case 6:
      let units = stride(from: content.startIndex, to: content.endIndex, by: 2).lazy.map { index in
        UInt16(content[index]) << 8 | UInt16(content[index + 1])
      }
      return String(validating: units, as: UTF16.self).map(PropertyListValue.string) ?? .unknown
    default: return .unknown
    }
  }

  /// Integers of less than eight bytes have no sign. Those of 16 bytes are what 8 bytes with a sign cannot hold.
  private static func integer(_ content: ArraySlice<UInt8>) -> PropertyListValue {
    let value = bits(content.suffix(8))
    if content.count < 8 { return .integer(Int64(value)) }
    if content.count == 8 { return .integer(Int64(bitPattern: value)) }
    return content.dropLast(8).allSatisfy { $0 == 0 } ? .unsigned(value) : .unknown
  }

  private static func bits(_ content: ArraySlice<UInt8>) -> UInt64 {
    content.reduce(0) { $0 << 8 | UInt64($1) }
  }
}
