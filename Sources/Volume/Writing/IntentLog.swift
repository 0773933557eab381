import Fuse
import Posix
import Synchronization

/// A change of the upper layer after which nodes have other names or other files.
struct NodeIntent: Equatable {
  enum Kind: UInt8 {
    /// A file gets a copy in the upper layer.
    case copyUp
    case rename
    case exchange
  }

  var kind: Kind
  /// The node that is concerned, and its name before.
  var node: NodeID
  var source: EntryKey
  /// Its name afterwards.
  var target: EntryKey
  /// What the upper layer has at the target afterwards.
  var moved: FileIdentity
  /// What it has at the source afterwards; of an exchange.
  var exchanged: FileIdentity?
  /// Whether the node keeps its inode number; of a copy.
  var keepsNumber = true
}

/// The changes that requests are about to make, in shared memory. A successor to which the kernel sends a request again
/// learns from it whether a predecessor may have made the change: without an intent, it has not.
///
/// Each request has a place that its number gives it. What is there stays until another one needs the place.
struct IntentLog: @unchecked Sendable {
  /// An intent, before its two names.
  private struct Record: BitwiseCopyable {
    /// The request's `unique`, without the kernel's mark of one that is sent again; 0 for none.
    var request: UInt64 = 0
    /// Of a `NodeIntent`, plus 1; 0 for a change that concerns no node.
    var kind: UInt8 = 0
    var keepsNumber = false
    var sourceLength: UInt16 = 0
    var targetLength: UInt16 = 0
    var node: UInt64 = 0
    var sourceParent: UInt64 = 0
    var targetParent: UInt64 = 0
    var moved: FileIdentity?
    var exchanged: FileIdentity?
  }

  /// Requests whose numbers differ by a multiple of twice that share a place.
  static let capacity = 1024
  static let stride = 1024
  private static let (sourcePlace, targetPlace, longest) = (512, 768, 256)

  private let memory: SharedMemory

  init(_ memory: SharedMemory) { self.memory = memory }

  /// The kernel counts requests in steps of two.
  private static func place(of request: UInt64) -> Int { Int((request >> 1) % UInt64(capacity)) }

  private func base(_ place: Int) -> UnsafeMutableRawPointer {
    memory.base + SharedRegions.intents.lowerBound + place * Self.stride
  }

  private func record(_ place: Int) -> UnsafeMutablePointer<Record> {
    base(place).assumingMemoryBound(to: Record.self)
  }

  // MARK: - The request of the calling thread

  private static var request: UInt64 { RequestThread.request & ~(1 << 63) }

  /// Records that it is about to change something.
  func begin(_ intent: NodeIntent? = nil) {
    let place = Self.place(of: Self.request)
    record(place).pointee.request = 0
    atomicMemoryFence(ordering: .releasing)
    if let intent { write(intent, at: place) } else { record(place).pointee.kind = 0 }
    atomicMemoryFence(ordering: .releasing)
    record(place).pointee.request = Self.request
  }

  /// Records that it has failed, and changed nothing.
  func withdraw() {
    let place = Self.place(of: Self.request)
    if record(place).pointee.request == Self.request { record(place).pointee.request = 0 }
  }

  /// Whether it has begun to change what it asks for, here or in a predecessor. A copy is not asked for.
  var hasBegun: Bool {
    let present = record(Self.place(of: Self.request)).pointee
    return Self.request != 0 && present.request == Self.request
      && present.kind != NodeIntent.Kind.copyUp.rawValue + 1
  }

  /// What it was about to do to a node.
  var nodeIntent: NodeIntent? { hasBegun ? nodeIntent(at: Self.place(of: Self.request)) : nil }

  // MARK: - Intents of nodes

  /// Those of all requests, also of ones that have been answered.
  var nodeIntents: [NodeIntent] {
    (0..<Self.capacity).compactMap { record($0).pointee.request == 0 ? nil : nodeIntent(at: $0) }
  }

  private func write(_ intent: NodeIntent, at place: Int) {
    record(place).pointee = Record(
      kind: intent.kind.rawValue + 1, keepsNumber: intent.keepsNumber,
      sourceLength: writeName(intent.source.name, at: base(place) + Self.sourcePlace),
      targetLength: writeName(intent.target.name, at: base(place) + Self.targetPlace),
      node: intent.node.rawValue, sourceParent: intent.source.parent.rawValue,
      targetParent: intent.target.parent.rawValue, moved: intent.moved, exchanged: intent.exchanged)
  }

  private func writeName(_ name: [UInt8], at place: UnsafeMutableRawPointer) -> UInt16 {
    let name = name.prefix(Self.longest)
    name.withUnsafeBytes { bytes in
      if let start = bytes.baseAddress { place.copyMemory(from: start, byteCount: bytes.count) }
    }
    return UInt16(name.count)
  }

  private func nodeIntent(at place: Int) -> NodeIntent? {
    let record = record(place).pointee
    guard record.kind > 0, let kind = NodeIntent.Kind(rawValue: record.kind - 1), let moved = record.moved
    else { return nil }
    return NodeIntent(
      kind: kind, node: NodeID(rawValue: record.node),
      source: key(record.sourceParent, base(place) + Self.sourcePlace, record.sourceLength),
      target: key(record.targetParent, base(place) + Self.targetPlace, record.targetLength),
      moved: moved, exchanged: record.exchanged, keepsNumber: record.keepsNumber)
  }

  private func key(_ parent: UInt64, _ name: UnsafeRawPointer, _ length: UInt16) -> EntryKey {
    let count = min(Int(length), Self.longest)
    return EntryKey(
      parent: NodeID(rawValue: parent), name: Array(UnsafeRawBufferPointer(start: name, count: count)))
  }
}

extension Reply {
  /// Whether a predecessor may have made the change that the request asks for.
  func mayBeDone(_ intents: IntentLog?) -> Bool { isResent && intents?.hasBegun == true }
}
