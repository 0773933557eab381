import Posix
import StringTables

/// A key of a merged table that another layer than the lowest of its layers gives a value.
public struct ComparedKey: Sendable, Equatable {
  public let key: String
  /// The layer whose value shows.
  public let layer: Int
  /// Whether a layer below has the key, too.
  public let isOverride: Bool
}

/// The keys of a merged table in which its layers differ.
public struct ComparedKeys: Sendable, Equatable {
  /// The most that are kept.
  static let most = 1000

  public var keys: [ComparedKey] = []
  /// How many more there are.
  public var more = 0

  init() {}

  /// - Parameter tables: with their layers, the topmost first.
  init(_ tables: [(table: StringTable, layer: Int)]) {
    guard let lowest = tables.last?.layer else { return }
    var lastTables = StringTable.KeyPlaces()
    for (place, table) in tables.enumerated() { lastTables.add(table.table, at: place) }
    for (place, table) in tables.enumerated() where table.layer != lowest {
      for entry in table.table.entries where lastTables.first(entry.key) == place {
        let isOverride = lastTables.last(entry.key).map { tables[$0].layer != table.layer } ?? false
        append(ComparedKey(key: entry.key, layer: table.layer, isOverride: isOverride))
      }
    }
  }

  private mutating func append(_ key: ComparedKey) {
    if keys.count < Self.most { keys.append(key) } else { more += 1 }
  }

  // MARK: - Encoding

  /// In a record behind the name: for each key a slash, the layer, `>` or `+`, and the key with `%`, `/` and NUL escaped; then
  /// a slash, `=`, and how many more there are.
  func append(to text: inout [UInt8]) {
    for key in keys {
      text += Array("/\(key.layer)\(key.isOverride ? ">" : "+")".utf8)
      for byte in key.key.utf8 {
        if byte == 0 || byte == UInt8(ascii: "/") || byte == UInt8(ascii: "%") {
          text += Array((byte < 16 ? "%0" : "%").utf8) + Array(String(byte, radix: 16).utf8)
        } else {
          text.append(byte)
        }
      }
    }
    if more > 0 { text += Array("/=\(more)".utf8) }
  }

  /// - Returns: nil if the text is malformed.
  init?(fields: some Sequence<ArraySlice<UInt8>>) {
    for field in fields {
      if field.first == UInt8(ascii: "=") {
        guard let more = Int(String(decoding: field.dropFirst(), as: UTF8.self)), more >= 0 else {
          return nil
        }
        self.more = more
        continue
      }
      guard let sign = field.firstIndex(where: { $0 == UInt8(ascii: ">") || $0 == UInt8(ascii: "+") }),
        let layer = Int(String(decoding: field[..<sign], as: UTF8.self)), layer >= 0,
        let key = Self.unescaped(field[(sign + 1)...])
      else { return nil }
      keys.append(ComparedKey(key: key, layer: layer, isOverride: field[sign] == UInt8(ascii: ">")))
    }
  }

  private static func unescaped(_ text: ArraySlice<UInt8>) -> String? {
    var (bytes, rest) = ([UInt8](), text)
    while let byte = rest.popFirst() {
      if byte != UInt8(ascii: "%") {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      else { return nil }
      bytes.append(value)
      rest = rest.dropFirst(2)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
