import Fuse
import Layers
import Posix
import Routing

/// The files that are open, and which of them the kernel reads and writes directly in the layer (FUSE passthrough,
/// `-o passthrough`): at native speed, through the page cache of the layer's file system alone.
///
/// The kernel requires all open files of a node to use the same backing file, or none. So the first open(2)
/// decides, until the last close.
final class Passthrough: Sendable {
  private struct Opening {
    /// nil: it is read through the mount's page cache, by READ.
    let file: BackingFile?
    var count = 1
    /// How many of them may write to the backing file.
    var writers: Int
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

  /// Bytes; smaller files of layers that take no changes are read by READ, which takes one or two requests once.
  let smallest: UInt64
  private let kernel: any BackingFiles
  /// nil for a read-only mount.
  private let upper: UpperLayer?
  private let state: Locked<State>

  /// - Parameter memory: where a successor finds what is open, and what a predecessor has left there.
  init(_ kernel: any BackingFiles, smallest: UInt64, upper: UpperLayer? = nil, memory: SharedMemory? = nil) {
    (self.kernel, self.smallest, self.upper) = (kernel, smallest, upper)
    var state = State(record: memory.map { OpeningRecord($0) })
    for opening in state.record?.all ?? [] {
      let count = Int(opening.count)
      // The record does not tell readers from writers.
      state.openings[opening.node] = Opening(
        file: opening.file, count: count, writers: upper == nil || opening.file == nil ? 0 : count,
        slot: opening.slot)
    }
    self.state = Locked(state)
  }

  /// Opens a node that is open already.
  /// - Parameter writes: whether it is opened for writing.
  /// - Returns: the backing file, nil inside for the page cache; nil if it is not open.
  func join(_ node: NodeID, writes: Bool = false) -> BackingFile?? {
    state.withLock { Self.join(node, writes, &$0) }
  }

  /// Opens a node that is open, through the page cache.
  /// - Returns: false if it is not.
  func joinCached(_ node: NodeID) -> Bool {
    state.withLock { state in
      guard let opening = state.openings[node], opening.file == nil else { return false }
      state.setCount(opening.count + 1, of: node)
      return true
    }
  }

  /// - Parameters:
  ///   - file: the layer's file; nil for the page cache.
  ///   - writes: as for `join`.
  /// - Returns: the backing file to use, which another open(2) may have decided; nil for the page cache.
  func open(_ node: NodeID, _ file: LayerFile?, writes: Bool = false) -> BackingFile? {
    let backing = file.flatMap(register)
    let (decided, isFirst) = state.withLock { state in
      if let present = Self.join(node, writes, &state) { return (present, false) }
      state.openings[node] = Opening(
        file: backing, writers: writes && backing != nil ? 1 : 0, slot: state.record?.add(node, backing))
      if backing != nil { state.opened += 1 }
      return (backing, true)
    }
    if !isFirst, let backing { kernel.unregister(backing) }
    return decided
  }

  private static func join(_ node: NodeID, _ writes: Bool, _ state: inout State) -> BackingFile?? {
    guard let opening = state.openings[node] else { return nil }
    state.setCount(opening.count + 1, of: node)
    if opening.file != nil {
      state.opened += 1
      if writes { state.openings[node]?.writers += 1 }
    }
    return .some(opening.file)
  }

  private func register(_ file: LayerFile) -> BackingFile? {
    do throws(Errno) {
      guard let upper else { return try registerAsSelf(file) }
      // The kernel writes to it with the rights of the thread that registers it: what is written counts as the owner's.
      return try upper.asOwner(EntryOwner(try file.attributes())) { () throws(Errno) in
        try registerAsSelf(file)
      }
    } catch {
      // The file is read by READ.
      state.withLock { state in
        state.refused += 1
        state.lastRefusal = error
      }
      return nil
    }
  }

  private func registerAsSelf(_ file: LayerFile) throws(Errno) -> BackingFile {
    try file.withDescriptor { descriptor throws(Errno) in try kernel.register(descriptor) }
  }

  /// - Parameter writes: as for `join`.
  func close(_ node: NodeID, writes: Bool = false) {
    let ended = state.withLock { state -> BackingFile? in
      guard let opening = state.openings[node] else { return nil }
      // Of those that a predecessor has recorded, readers counted as writers.
      state.openings[node]?.writers = min(
        max(0, opening.writers - (writes ? 1 : 0)), opening.count - 1)
      state.setCount(opening.count - 1, of: node)
      return opening.count == 1 ? opening.file : nil
    }
    if let ended { kernel.unregister(ended) }
  }

  var figures: PassthroughStatus {
    state.withLock { state in
      PassthroughStatus(
        smallest: smallest, open: state.openings.count { $0.value.file != nil },
        isOfUpperLayer: upper != nil, opened: state.opened, refused: state.refused,
        reason: state.lastRefusal?.description)
    }
  }
}

extension Passthrough: DirectWriters {
  func mayWrite(to node: NodeID) -> Bool { state.withLock { ($0.openings[node]?.writers ?? 0) > 0 } }
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
  /// Whether the files of the layer that takes the changes are passed through, whatever their size, and no others.
  var isOfUpperLayer = false
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
    let files = isOfUpperLayer ? "in the layer that takes the changes" : "from \(smallest) bytes on"
    return "passthrough, \(files): \(open) files now, opened \(opened) times\(refusals)"
  }
}
