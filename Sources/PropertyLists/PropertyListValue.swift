/// A value of a property list.
public enum PropertyListValue: Sendable, Hashable {
  /// A text.
  case string(String)
  /// An integer that fits into 64 bits with a sign.
  case integer(Int64)
  /// An integer above those.
  case unsigned(UInt64)
  /// A floating-point number.
  case real(Double)
  /// True or false.
  case boolean(Bool)
  /// Bytes.
  case data([UInt8])
  /// A time, in seconds since 2001-01-01 00:00:00 UTC.
  case date(Double)
  /// A list.
  case array([PropertyListValue])
  /// Keys and values.
  case dictionary(PropertyListDictionary)
  /// A scalar that is malformed, or of a kind that no other case has, such as the references of archived objects.
  case unknown

  /// The text of a string; nil for other values.
  public var string: String? { if case .string(let text) = self { text } else { nil } }

  /// The members of a dictionary; nil for other values.
  public var dictionary: PropertyListDictionary? {
    if case .dictionary(let dictionary) = self { dictionary } else { nil }
  }
}

/// A dictionary of a property list, which has its members in the order of the file.
public struct PropertyListDictionary: Sendable, Hashable {
  /// A key and its value.
  public struct Member: Sendable, Hashable {
    /// The key.
    public let key: String
    /// The value.
    public internal(set) var value: PropertyListValue

    /// Creates a member.
    public init(key: String, value: PropertyListValue) {
      self.key = key
      self.value = value
    }

    /// Many members may share one long key, of which a comparison by elements would read the start each time.
    func hasKey(_ key: String) -> Bool {
      self.key.utf8.count == key.utf8.count && self.key.utf8.elementsEqual(key.utf8)
    }
  }

  /// The members as in the file. A key may occur several times; the last one counts, as in Foundation.
  public internal(set) var members: [Member]

  /// Creates a dictionary.
  public init(members: [Member] = []) { self.members = members }

  /// The value of a key, in time proportional to the number of members; nil without it.
  ///
  /// Keys are compared by their code points, as in Foundation: composed and decomposed letters differ.
  public subscript(key: String) -> PropertyListValue? {
    members.last { $0.hasKey(key) }?.value
  }
}
