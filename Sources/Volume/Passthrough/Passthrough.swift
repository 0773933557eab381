import Fuse
import Layers
import Posix
import Routing

/// The files that are open, and which of them the kernel reads directly from the layer's file (FUSE passthrough,
/// `-o passthrough`): at native speed, through the page cache of the layer's file system alone.
///
/// The kernel requires all open files of a node to use the same backing file, or none. So the first open(2)
/// decides, until the last close.
final class Passthrough: Sendable {
  private struct Opening {
    /// nil: it is read through the mount's page cache, by READ.
    let file: BackingFile?
    var count = 1
    /// In the record; nil if it had no room.
    let slot: Int?
  }

  private struct State {
    var openings: [NodeID: Opening] = [:]
    /// For a successor; nil if none is to come.
    var record: OpeningRecord?
    var opened: UInt64 = 0
    var refused: UInt64 = 0
    var lastRefusal: Errno?

    /// - Parameter count: 0 once the node is closed.
    mutating func setCount(_ count: Int, of node: NodeID) {
      if let slot = openings[node]?.slot { record?.setCount(count, at: slot) }
      if count == 0 { openings[node] = nil } else { openings[node]?.count = count }
    }
  }

  /// Bytes; smaller files are read by READ, which takes one or two requests once.
  let smallest: UInt64
  private let kernel: any BackingFiles
  private let state: Locked<State>

  /// - Parameter memory: where a successor finds what is open, and what a predecessor has left there.
  init(_ kernel: any BackingFiles, smallest: UInt64, memory: SharedMemory? = nil) {
    self.kernel = kernel
    self.smallest = smallest
    var state = State(record: memory.map { OpeningRecord($0) })
    for opening in state.record?.all ?? [] {
      state.openings[opening.node] = Opening(
        file: opening.file, count: Int(opening.count), slot: opening.slot)
    }
    self.state = Locked(state)
  }

  /// Opens a node that is open already.
  /// - Returns: the backing file, nil inside for the page cache; nil if it is not open.
  func join(_ node: NodeID) -> BackingFile?? { state.withLock { Self.join(node, &$0) } }

  /// - Parameter file: the layer's file; nil for the page cache.
  /// - Returns: the backing file to use, which another open(2) may have decided; nil for the page cache.
  func open(_ node: NodeID, _ file: LayerFile?) -> BackingFile? {
    let backing = file.flatMap(register)
    let (decided, isFirst) = state.withLock { state in
      if let present = Self.join(node, &state) { return (present, false) }
      state.openings[node] = Opening(file: backing, slot: state.record?.add(node, backing))
      if backing != nil { state.opened += 1 }
      return (backing, true)
    }
    if !isFirst, let backing { kernel.unregister(backing) }
    return decided
  }

  private static func join(_ node: NodeID, _ state: inout State) -> BackingFile?? {
    guard let opening = state.openings[node] else { return nil }
    state.setCount(opening.count + 1, of: node)
    if opening.file != nil { state.opened += 1 }
    return .some(opening.file)
  }

  private func register(_ file: LayerFile) -> BackingFile? {
    do throws(Errno) {
      return try file.withDescriptor { descriptor throws(Errno) in try kernel.register(descriptor) }
    } catch {
      // The file is read by READ.
      state.withLock { state in
        state.refused += 1
        state.lastRefusal = error
      }
      return nil
    }
  }

  func close(_ node: NodeID) {
    let ended = state.withLock { state -> BackingFile? in
      guard let opening = state.openings[node] else { return nil }
      state.setCount(opening.count - 1, of: node)
      return opening.count == 1 ? opening.file : nil
    }
    if let ended { kernel.unregister(ended) }
  }

  var figures: PassthroughStatus {
    state.withLock { state in
      PassthroughStatus(
        smallest: smallest, open: state.openings.count { $0.value.file != nil }, opened: state.opened,
        refused: state.refused, reason: state.lastRefusal?.description)
    }
  }
}

enum PassthroughMode: Sendable {
  case off
  case impossible(String)
  case possible(Passthrough)
  /// It was possible, and the process is about to end or to hand over.
  case ended

  /// For `bundlefs status`; nil without `-o passthrough`.
  var status: PassthroughStatus? {
    switch self {
    case .off, .ended: nil
    case .impossible(let reason): PassthroughStatus(reason: reason)
    case .possible(let passthrough): passthrough.figures
    }
  }
}

/// What `bundlefs status` shows about passthrough.
struct PassthroughStatus {
  /// Bytes from which on files are passed through; nil if none can be.
  var smallest: UInt64?
  /// Nodes that are open with a backing file now.
  var open = 0
  var opened: UInt64 = 0
  var refused: UInt64 = 0
  /// Why no file can be passed through, or why the last one was refused.
  var reason: String?

  func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("smallest", smallest)
      json.member("open", open)
      json.member("opened", opened)
      json.member("refused", refused)
      json.member("reason", reason)
    }
  }

  var line: String {
    guard let smallest else { return "passthrough: none: \(reason ?? "")" }
    let refusals = refused == 0 ? "" : "; refused: \(refused), the last one: \(reason ?? "")"
    return "passthrough, from \(smallest) bytes on: \(open) files now, opened \(opened) times\(refusals)"
  }
}
