import Posix

/// The encoding of a comparison for the ioctl: the count of unchanged files, then a record for each name,
/// each followed by NUL. A record is the kind's letter as in `ls -l`, the status character, the layers'
/// indexes separated by `,`, a space and the name, for merged tables with `ComparedKeys` behind.
public struct ComparisonText: Sendable {
  /// The count of unchanged entries that are not directories.
  public let unchanged: Int
  public let names: [ComparedName]

  /// - Parameter isWhole: whether unchanged files are included.
  public static func encoded(_ names: [ComparedName], isWhole: Bool) -> [UInt8] {
    let unchanged = names.filter(\.isUnchangedFile).count
    var text = Array(String(unchanged).utf8) + [0]
    for name in names where isWhole || !name.isUnchangedFile { name.append(to: &text) }
    return text
  }

  /// Decodes the text; nil if it is malformed.
  public init?(_ text: [UInt8]) {
    var fields = text.split(separator: 0, omittingEmptySubsequences: false)[...]
    guard fields.popLast()?.isEmpty == true, let count = fields.popFirst(),
      let unchanged = Int(String(decoding: count, as: UTF8.self)), unchanged >= 0
    else { return nil }
    var names: [ComparedName] = []
    for field in fields {
      guard let name = ComparedName(record: field) else { return nil }
      names.append(name)
    }
    (self.unchanged, self.names) = (unchanged, names)
  }
}

extension ComparedName {
  /// Whether the entry is MAIN's and not a directory.
  public var isUnchangedFile: Bool { status == .unchanged && kind != .directory }

  private static let letters: [(kind: FileKind, letter: UInt8)] = [
    (.regular, 0x2D), (.directory, 0x64), (.symbolicLink, 0x6C), (.fifo, 0x70), (.socket, 0x73),
    (.characterDevice, 0x63), (.blockDevice, 0x62),
  ]

  fileprivate func append(to text: inout [UInt8]) {
    text.append(Self.letters.first { $0.kind == kind }?.letter ?? 0x2D)
    text.append(status.rawValue)
    text += Array(layers.map(String.init).joined(separator: ",").utf8) + [UInt8(ascii: " ")] + name
    keys.append(to: &text)
    text.append(0)
  }

  fileprivate init?(record: ArraySlice<UInt8>) {
    guard let blank = record.firstIndex(of: UInt8(ascii: " ")), blank > record.startIndex + 2,
      let kind = Self.letters.first(where: { $0.letter == record[record.startIndex] })?.kind,
      let status = Status(rawValue: record[record.startIndex + 1])
    else { return nil }
    let indexes = record[(record.startIndex + 2)..<blank].split(separator: UInt8(ascii: ","))
    let layers = indexes.compactMap { Int(String(decoding: $0, as: UTF8.self)) }
    let fields = record[(blank + 1)...].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard layers.count == indexes.count, let name = fields.first, !name.isEmpty,
      status == .merged || fields.count == 1, let keys = ComparedKeys(fields: fields.dropFirst())
    else { return nil }
    self.init(name: Array(name), kind: kind, status: status, layers: layers, keys: keys)
  }
}
