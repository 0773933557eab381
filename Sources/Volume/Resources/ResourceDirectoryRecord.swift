import Fuse
import Posix

/// The paths of the directories below `rsrc:` by their nodes, in shared memory, for a successor.
struct ResourceDirectoryRecord: Sendable {
  private static let region = SharedRegions.resources
  private static let leastLimit = 1 << 20

  private var log: SharedLog

  init(_ memory: SharedMemory) { log = SharedLog(memory, in: Self.region, leastLimit: Self.leastLimit) }

  struct Entry {
    let node: NodeID
    let inodeNumber: UInt64
    let path: [[UInt8]]

    fileprivate var encoded: [UInt8] {
      withUnsafeBytes(of: (node.rawValue, inodeNumber)) { Array($0) }
        + path.joined(separator: [UInt8(ascii: "/")])
    }
  }

  /// - Parameter all: those that are known, in case the record is written anew.
  mutating func add(_ entry: Entry, all: () -> [Entry]) {
    log.append(0, entry.encoded.span)
    log.commit()
    guard log.isLong else { return }
    log.begin { append in for entry in all() { append(0, entry.encoded) } }
  }

  /// What a predecessor has recorded, oldest first.
  var all: [Entry] {
    var found: [Entry] = []
    log.forEach { _, bytes in
      if bytes.count < 16 { return }
      found.append(
        Entry(
          node: NodeID(rawValue: bytes.loadUnaligned(as: UInt64.self)),
          inodeNumber: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self),
          path: bytes[16...].split(separator: UInt8(ascii: "/")).map { Array($0) }))
    }
    return found
  }
}
