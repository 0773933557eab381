/// Builds a value while a text is parsed, and checks its structure.
struct PropertyListBuilder {
  /// The most levels of arrays and dictionaries.
  static let maxDepth = 128

  /// An open collection. It is changed in place, since a copy for each element would take quadratic time.
  private struct Level {
    let isArray: Bool
    /// The elements of an array.
    var values: [PropertyListValue] = []
    /// The members of a dictionary.
    var members: [PropertyListDictionary.Member] = []
    /// The key whose value is next.
    var key: String?

    var value: PropertyListValue {
      isArray ? .array(values) : .dictionary(PropertyListDictionary(members: members))
    }
  }

  private var levels: [Level] = []
  private var root: PropertyListDictionary?

  /// Whether the outermost dictionary was closed.
  var isComplete: Bool { root != nil }

  /// Whether the outermost dictionary was opened.
  var hasRoot: Bool { root != nil || !levels.isEmpty }

  var isInArray: Bool { levels.last?.isArray ?? false }

  /// The number of open arrays and dictionaries.
  var depth: Int { levels.count }

  /// Whether a key is next, or the end of a dictionary.
  var expectsKey: Bool { levels.last.map { !$0.isArray && $0.key == nil } ?? false }

  /// The outermost dictionary; what it has so far, if it was not closed.
  var dictionary: PropertyListDictionary {
    root ?? PropertyListDictionary(members: levels.first?.members ?? [])
  }

  mutating func add(key text: [UInt8]) throws(MalformedPropertyList) {
    guard expectsKey else { throw MalformedPropertyList("a key is not expected here") }
    levels[levels.count - 1].key = String(decoding: text, as: UTF8.self)
  }

  mutating func add(_ value: PropertyListValue) throws(MalformedPropertyList) {
    let index = levels.count - 1
    guard index >= 0 else { throw MalformedPropertyList("a value without a key") }
    if levels[index].isArray {
      levels[index].values.append(value)
    } else {
      guard let key = levels[index].key else { throw MalformedPropertyList("a value without a key") }
      levels[index].members.append(PropertyListDictionary.Member(key: key, value: value))
      levels[index].key = nil
    }
  }

  mutating func beginArray() throws(MalformedPropertyList) {
    if levels.isEmpty { throw MalformedPropertyList("the outermost value is not a dictionary") }
    try begin(Level(isArray: true))
  }

  mutating func beginDictionary() throws(MalformedPropertyList) { try begin(Level(isArray: false)) }

  /// Ends the innermost collection.
  /// - Throws: if it is of the other kind, or if a key has no value.
  mutating func end(array isArray: Bool) throws(MalformedPropertyList) {
    guard let level = levels.last, level.isArray == isArray else {
      throw MalformedPropertyList("the end of a collection that is not open")
    }
    if level.key != nil { throw MalformedPropertyList("a key has no value") }
    levels.removeLast()
    if levels.isEmpty { root = level.value.dictionary } else { try add(level.value) }
  }

  private mutating func begin(_ level: Level) throws(MalformedPropertyList) {
    if expectsKey { throw MalformedPropertyList("a value without a key") }
    guard !isComplete else { throw MalformedPropertyList("a second value at the top") }
    guard levels.count < Self.maxDepth else {
      throw MalformedPropertyList("more than \(Self.maxDepth) levels")
    }
    levels.append(level)
  }
}
