/// Checks the structure of a property list while it is parsed, and keeps the wanted strings.
struct PropertyListBuilder {
  /// The most levels of arrays and dictionaries.
  static let maxDepth = 128

  private enum Level {
    case array
    /// The key whose value is next.
    case dictionary(Key?)
  }

  /// A key of a dictionary.
  enum Key {
    /// The index of one of the wanted keys.
    case wanted(Int)
    case other
  }

  private let keys: [String]
  private let encodedKeys: [[UInt8]]
  private var levels: [Level] = []
  private var values: [[UInt8]?]
  private(set) var hasRoot = false

  init(keys: [String]) {
    self.keys = keys
    encodedKeys = keys.map { Array($0.utf8) }
    values = Array(repeating: nil, count: keys.count)
  }

  /// Whether the outermost dictionary was closed.
  var isComplete: Bool { hasRoot && levels.isEmpty }

  var isInArray: Bool { if case .array? = levels.last { true } else { false } }

  /// The number of open arrays and dictionaries.
  var depth: Int { levels.count }

  /// Whether a key is next, or the end of a dictionary.
  var expectsKey: Bool { if case .dictionary(nil)? = levels.last { true } else { false } }

  /// Whether the parser has to decode the string that is next.
  var needsString: Bool {
    guard levels.count == 1, case .dictionary(let key) = levels[0] else { return false }
    switch key {
    case nil, .wanted: return true
    case .other: return false
    }
  }

  var strings: [String: String] {
    var found: [String: String] = [:]
    for (key, value) in zip(keys, values) { found[key] = value.map { String(decoding: $0, as: UTF8.self) } }
    return found
  }

  /// - Parameter text: the key; empty unless `needsString`.
  mutating func add(key text: [UInt8]) throws(MalformedPropertyList) {
    guard expectsKey else { throw MalformedPropertyList() }
    let index = levels.count == 1 ? encodedKeys.firstIndex(of: text) : nil
    levels[levels.count - 1] = .dictionary(index.map(Key.wanted) ?? .other)
  }

  /// - Parameter text: the string; nil for other values and unless `needsString`.
  mutating func add(value text: [UInt8]?) throws(MalformedPropertyList) {
    if levels.count == 1, case .dictionary(.wanted(let index)?) = levels[0] {
      values[index] = text
    }
    try takeKey()
  }

  mutating func beginArray() throws(MalformedPropertyList) { try begin(.array) }

  mutating func beginDictionary() throws(MalformedPropertyList) { try begin(.dictionary(nil)) }

  /// - Throws: if the innermost collection is of the other kind, or if a key has no value.
  mutating func end(array isArray: Bool) throws(MalformedPropertyList) {
    switch levels.popLast() {
    case .array? where isArray: return
    case .dictionary(nil)? where !isArray: return
    default: throw MalformedPropertyList()
    }
  }

  private mutating func begin(_ level: Level) throws(MalformedPropertyList) {
    if case .array = level, levels.isEmpty { throw MalformedPropertyList() }
    if !levels.isEmpty { try add(value: nil) }
    guard !isComplete, levels.count < Self.maxDepth else { throw MalformedPropertyList() }
    hasRoot = true
    levels.append(level)
  }

  /// Consumes the key to which a value belongs.
  private mutating func takeKey() throws(MalformedPropertyList) {
    switch levels.last {
    case .array?: return
    case .dictionary(.some)?: levels[levels.count - 1] = .dictionary(nil)
    case .dictionary(nil)?, nil: throw MalformedPropertyList()
    }
  }
}
