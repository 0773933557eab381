import Containers
import CLibrary
import Posix

/// The files and folders of an archive: nodes in an array, names in one block of bytes, and a hash index of
/// the nodes by folder and name.
///
/// Invariants: node 0 is the root, which the index lacks; a folder precedes its children.
struct ArchiveTree: Sendable {
  private(set) var nodes: [ArchiveNode]
  private var names: [UInt8] = [0]
  private var index: HashIndex
  /// By node, the number of its `ArchivedAttributes`, or 0. Shorter than `nodes` if the last ones have none.
  private var attributes: [UInt32] = []

  static let root: UInt32 = 0
  private static let seed = UInt64.random(in: .min ... .max)

  /// - Parameter nameBytes: at most the bytes of names for which room is reserved.
  init(capacity: Int, nameBytes: Int = 0) {
    var root = ArchiveNode()
    root.mode = UInt16(FileKind.directory.rawValue | 0o755)
    nodes = [root]
    nodes.reserveCapacity(capacity + 1)
    index = HashIndex(capacity: capacity)
    names.reserveCapacity(nameBytes)
  }

  subscript(node: UInt32) -> ArchiveNode {
    _read { yield nodes[Int(node)] }
    _modify { yield &nodes[Int(node)] }
  }

  var count: Int { nodes.count }

  func find(_ name: UnsafeRawBufferPointer, in folder: UInt32) -> UInt32? {
    let node = index.first(Self.hash(name, folder)) { nodes[Int($0)].parent == folder && has($0, name) }
    return node == 0 ? nil : node
  }

  mutating func setAttributes(_ number: UInt32, of node: UInt32) {
    if attributes.count <= node {
      if number == 0 { return }
      attributes += repeatElement(0, count: nodes.count - attributes.count)
    }
    attributes[Int(node)] = number
  }

  /// The number of a node's `ArchivedAttributes`; 0 for none.
  func attributes(of node: UInt32) -> UInt32 { node < attributes.count ? attributes[Int(node)] : 0 }

  /// The number of a node. Names are in the order of the nodes.
  func number(of node: ArchiveNode) -> UInt32 {
    var (low, high) = (0, nodes.count)
    while high - low > 1 {
      let middle = low + (high - low) / 2
      if nodes[middle].name <= node.name { low = middle } else { high = middle }
    }
    return UInt32(low)
  }

  /// Adds a node that does not exist.
  /// - Returns: its number; nil if the tree is full.
  mutating func add(_ name: UnsafeRawBufferPointer, in folder: UInt32, _ node: ArchiveNode) -> UInt32? {
    guard nodes.count < Int(UInt32.max) / 2, names.count + name.count < Int(UInt32.max) else { return nil }
    var node = node
    let number = UInt32(nodes.count)
    node.parent = folder
    node.name = UInt32(names.count)
    node.nameLength = UInt8(name.count)
    names.append(contentsOf: name)
    names.append(0)
    node.next = UInt32(nodes[Int(folder)].offset)
    nodes[Int(folder)].offset = UInt64(number)
    nodes.append(node)
    index.insert(number, Self.hash(name, folder))
    return number
  }

  /// Has folders list their children in the order in which they were added.
  mutating func orderChildren() {
    for node in nodes.indices where nodes[node].isFolder { nodes[node].offset = 0 }
    for node in nodes.indices.dropFirst().reversed() {
      let folder = Int(nodes[node].parent)
      nodes[node].next = UInt32(nodes[folder].offset)
      nodes[folder].offset = UInt64(node)
    }
  }

  @inline(__always)
  func withName<Result>(of node: UInt32, _ body: (CName) throws(Errno) -> Result) throws(Errno) -> Result {
    let start = Int(nodes[Int(node)].name)
    // `withUnsafeBytes` does not preserve the error's type.
    return try names.withUnsafeBytes { all -> Swift.Result<Result, Errno> in
      do throws(Errno) {
        let name = all.baseAddress.unsafelyUnwrapped + start
        return .success(try body(name.assumingMemoryBound(to: CChar.self)))
      } catch { return .failure(error) }
    }.get()
  }

  func name(of node: UInt32) -> [UInt8] {
    let start = Int(nodes[Int(node)].name)
    return Array(names[start..<start + Int(nodes[Int(node)].nameLength)])
  }

  /// The child of a folder with the name of another tree's node.
  func find(_ node: UInt32, of other: ArchiveTree, in folder: UInt32) -> UInt32? {
    let start = Int(other.nodes[Int(node)].name)
    let count = Int(other.nodes[Int(node)].nameLength)
    return other.names.withUnsafeBytes {
      find(UnsafeRawBufferPointer(rebasing: $0[start..<start + count]), in: folder)
    }
  }

  private func has(_ node: UInt32, _ name: UnsafeRawBufferPointer) -> Bool {
    guard Int(nodes[Int(node)].nameLength) == name.count else { return false }
    return names.withUnsafeBytes {
      memcmp(
        $0.baseAddress.unsafelyUnwrapped + Int(nodes[Int(node)].name), name.baseAddress.unsafelyUnwrapped,
        name.count) == 0
    }
  }

  /// A multiplicative hash, seeded anew in each process, so that an archive cannot contain colliding names.
  private static func hash(_ name: UnsafeRawBufferPointer, _ folder: UInt32) -> UInt32 {
    func mix(_ left: UInt64, _ right: UInt64) -> UInt64 {
      let product = left.multipliedFullWidth(by: right)
      return product.high ^ product.low
    }
    var hash = seed ^ UInt64(folder) &* 0x9E37_79B9_7F4A_7C15
    var offset = 0
    while offset + 8 <= name.count {
      hash = mix(hash ^ name.number(at: offset, as: UInt64.self), 0xD6E8_FEB8_6659_FD93 ^ seed)
      offset += 8
    }
    var rest = UInt64(name.count)
    while offset < name.count {
      rest = rest << 8 | UInt64(name[offset])
      offset += 1
    }
    return UInt32(truncatingIfNeeded: mix(hash ^ rest, 0xA076_1D64_78BD_642F ^ seed))
  }
}
