import CLibrary
import Posix

/// An extended attribute of an archive's entry.
struct ArchivedAttribute: Hashable, Sendable {
  let name: [UInt8]
  let value: [UInt8]
}

/// The owner and the extended attributes of an archive's entry.
struct ArchivedAttributes: Hashable, Sendable {
  var owner: UInt32
  var group: UInt32
  var extended: [ArchivedAttribute] = []

  /// Nothing that an archive says may make the ID -1, which chown(2) takes for "as it is".
  /// - Returns: nil if either is not the ID of any user or group.
  init?(owner: Int64, group: Int64) {
    guard let owner = UInt32(exactly: owner), let group = UInt32(exactly: group), owner != .max, group != .max
    else { return nil }
    (self.owner, self.group) = (owner, group)
  }

  /// The value of an extended attribute.
  /// - Throws: ENODATA; ERANGE if the buffer, which is not empty, is too small.
  static func value(
    of name: CName, in extended: [ArchivedAttribute], into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    let wanted = UnsafeRawBufferPointer(start: name, count: strlen(name))
    guard let value = extended.first(where: { wanted.elementsEqual($0.name) })?.value else { throw .noData }
    if buffer.isEmpty { return value.count }
    guard value.count <= buffer.count else { throw .outOfRange }
    buffer.copyBytes(from: value)
    return value.count
  }

  /// The names, each followed by NUL.
  static func names(of extended: [ArchivedAttribute]) -> [UInt8] { extended.flatMap { $0.name + [0] } }
}

/// The different attributes that the entries of an archive have, each kept once.
struct ArchivedAttributeTable: Sendable {
  private(set) var all: [ArchivedAttributes] = []
  private var numbers: [ArchivedAttributes: UInt32] = [:]
  /// The bytes of extended attributes that are kept.
  private var bytes = 0
  /// A compressed archive can claim any number of bytes.
  private static let mostBytes = 64 << 20

  /// The number of these attributes, counted from 1. Without their extended ones if the table is full.
  mutating func number(of attributes: ArchivedAttributes) -> UInt32 {
    if let number = numbers[attributes] { return number }
    let size = attributes.extended.reduce(0) { $0 + $1.name.count + $1.value.count }
    if size > 0, bytes + size > Self.mostBytes {
      var rest = attributes
      rest.extended = []
      return number(of: rest)
    }
    bytes += size
    // There are fewer than entries, whose number is limited by the tree.
    guard let number = UInt32(exactly: all.count + 1) else { return 0 }
    all.append(attributes)
    numbers[attributes] = number
    return number
  }
}

extension ArchiveIndex {
  /// The attributes of a node; nil if it belongs to the mounting user.
  func attributes(of node: ArchiveNode) -> ArchivedAttributes? {
    attributeTable.isEmpty ? nil : attributes(ofNode: tree.number(of: node))
  }

  /// The extended attributes of a node.
  func extendedAttributes(of node: ArchiveNode) -> [ArchivedAttribute] {
    attributes(of: node)?.extended ?? []
  }

  /// As `attributes(of:)`, by the node's number.
  func attributes(ofNode node: UInt32) -> ArchivedAttributes? {
    let number = tree.attributes(of: node)
    return number == 0 ? nil : attributeTable[Int(number) - 1]
  }
}
