import Fuse
import Layers
import Posix
import Routing
import Synchronization

/// The files that are open, and which of them the kernel reads and writes directly in the layer (FUSE passthrough,
/// `-o passthrough`): at native speed, through the page cache of the layer's file system alone.
///
/// The kernel requires all open files of a node to use the same backing file, or none. So the first open(2)
/// decides, until the last close.
final class Passthrough: Sendable {
  private struct Opening {
    /// nil: it is read through the mount's page cache, by READ.
    var file: BackingFile?
    /// A node that is not open is kept while a program may have it mapped.
    var counts = OpeningRecord.Counts()
    /// How often a program has closed it that could write to the backing file, and how many such events the layer has
    /// reported, of which the kernel may make one of several.
    var closings = 0
    var reportedClosings = 0
    var lastClosing = TimeSpec.monotonic
    /// In the record; nil if it had no room.
    let slot: Int?

    var isWritten: Bool { counts.writers > 0 || counts.mayBeMapped }
  }

  private struct State {
    var openings: [NodeID: Opening] = [:]
    /// For a successor; nil if none is to come.
    var record: OpeningRecord?
    var opened: UInt64 = 0
    var refused: UInt64 = 0
    var lastRefusal: Errno?
  }

  /// An OPEN or a RELEASE.
  struct Request {
    let node: NodeID
    /// The kernel's number of it.
    let number: UInt64
    /// Whether it is one for writing.
    let writes: Bool
  }

  /// What an open(2) needs.
  enum Demand {
    /// To be passed through.
    case passed(LayerFile)
    /// The page cache, unless the kernel demands a backing file.
    case cached
    /// The same, of a file that may only be appended to: nothing may be written to a backing file.
    case appended(isReadable: Bool)
    /// No backing file at all.
    case unbacked

    fileprivate var file: LayerFile? { if case .passed(let file) = self { file } else { nil } }
  }

  /// Bytes; smaller files of layers that take no changes are read by READ, which takes one or two requests once.
  let smallest: UInt64
  private let kernel: any BackingFiles
  /// nil for a read-only mount.
  private let upper: UpperLayer?
  private let state: Locked<State>
  /// How many nodes may be written to directly.
  private let written = Atomic(0)

  /// - Parameter memory: where a successor finds what is open, and what a predecessor has left there.
  init(_ kernel: any BackingFiles, smallest: UInt64, upper: UpperLayer? = nil, memory: SharedMemory? = nil) {
    (self.kernel, self.smallest, self.upper) = (kernel, smallest, upper)
    var state = State(record: memory.map { OpeningRecord($0) })
    for opening in state.record?.all ?? [] {
      state.openings[opening.node] = Opening(
        file: opening.file, counts: opening.counts, slot: opening.slot)
    }
    written.store(state.openings.values.count { $0.isWritten }, ordering: .relaxed)
    self.state = Locked(state)
  }

  // MARK: - OPEN

  /// Opens a node that is open already.
  /// - Returns: nil if it is not.
  /// - Throws: EBUSY if the kernel demands a backing file, and the demand forbids it.
  func join(_ request: Request, _ demand: Demand) throws(Errno) -> FileOpening? {
    try state.withLock { state throws(Errno) in try join(request, demand, &state) }
  }

  /// Opens a node, and registers its file if it is to be passed through and not open already.
  /// - Throws: as `join`.
  func open(_ request: Request, _ demand: Demand) throws(Errno) -> FileOpening {
    if let present = try join(request, demand) { return present }
    let backing = demand.file.flatMap(register)
    var isUsed = false
    defer { if !isUsed, let backing { kernel.unregister(backing) } }
    return try state.withLock { state throws(Errno) in
      if let present = try join(request, demand, &state) { return present }
      isUsed = true
      return add(request, backing, &state)
    }
  }

  /// The first open(2).
  private func add(_ request: Request, _ backing: BackingFile?, _ state: inout State) -> FileOpening {
    var opening =
      state.openings[request.node] ?? Opening(slot: state.record?.add(request.node))
    opening.file = backing
    if let slot = opening.slot { state.record?.setFile(backing, at: slot) }
    return count(request, in: opening, &state)
  }

  private func join(_ request: Request, _ demand: Demand, _ state: inout State) throws(Errno) -> FileOpening?
  {
    guard let opening = state.openings[request.node], opening.counts.all > 0 else { return nil }
    var found = Self.answer(opening)
    if case .passed(let file) = found {
      switch demand {
      case .unbacked: throw .resourceBusy
      // A mapping would change what is there.
      case .appended(let isReadable) where request.writes && isReadable: throw .resourceBusy
      case .appended where request.writes: found = .writtenByRequests(file)
      case .appended, .passed, .cached: break
      }
    }
    // What a predecessor has counted, and did not reply to.
    if state.record?.isCounted(request.number) == true { return found }
    _ = count(request, in: opening, &state)
    return found
  }

  private static func answer(_ opening: Opening) -> FileOpening {
    if let file = opening.file { return .passed(file) }
    // A mapping changes the file and not the page cache.
    return opening.counts.mayBeMapped ? .uncached : .cached
  }

  private func count(_ request: Request, in opening: Opening, _ state: inout State) -> FileOpening {
    var opening = opening
    opening.counts.all += 1
    if opening.file != nil {
      state.opened += 1
      if request.writes {
        if !opening.isWritten { (opening.closings, opening.reportedClosings) = (0, 0) }
        opening.counts.writers += 1
      }
    }
    set(opening, of: request.node, for: request.number, &state)
    return Self.answer(opening)
  }

  private func set(
    _ opening: Opening, of node: NodeID, for request: UInt64?, ended: BackingFile? = nil, _ state: inout State
  ) {
    let wasWritten = state.openings[node]?.isWritten == true
    if opening.isWritten != wasWritten { written.add(wasWritten ? -1 : 1, ordering: .sequentiallyConsistent) }
    state.openings[node] = opening.counts.isNone ? nil : opening
    if let slot = opening.slot { state.record?.set(opening.counts, at: slot, for: request, ended: ended) }
  }

  private func register(_ file: LayerFile) -> BackingFile? {
    do throws(Errno) {
      guard let upper else { return try registerAsSelf(file) }
      return try upper.asAnyWriter(of: file) { () throws(Errno) in try registerAsSelf(file) }
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

  // MARK: - RELEASE and FORGET

  func close(_ request: Request) {
    let ended = state.withLock { state in
      // A predecessor has counted it, and may not have unregistered the file.
      state.record?.isCounted(request.number) == true
        ? state.record?.fileEnded(by: request.number) : close(request, isUndone: false, &state)
    }
    if let ended { kernel.unregister(ended) }
  }

  /// Undoes an open(2) that has failed, or of which the kernel takes no notice.
  func undo(_ request: Request) {
    let ended = state.withLock { state in
      state.record?.finish(request.number)
      return close(request, isUndone: true, &state)
    }
    if let ended { kernel.unregister(ended) }
  }

  /// - Parameter isUndone: whether no program had it open.
  /// - Returns: the backing file if it is open no more.
  private func close(_ request: Request, isUndone: Bool, _ state: inout State) -> BackingFile? {
    guard var opening = state.openings[request.node], opening.counts.all > 0 else { return nil }
    opening.counts.all -= 1
    if request.writes, opening.file != nil {
      opening.counts.writers = max(0, opening.counts.writers - 1)
      if !isUndone {
        // The end of a mapping is no request.
        opening.counts.mayBeMapped = true
        opening.closings += 1
        opening.lastClosing = .monotonic
      }
    }
    opening.counts.writers = min(opening.counts.writers, opening.counts.all)
    let ended = opening.counts.all == 0 ? opening.file : nil
    if opening.counts.all == 0 { opening.file = nil }
    set(opening, of: request.node, for: isUndone ? nil : request.number, ended: ended, &state)
    return ended
  }

  /// To be called when the reply to an OPEN or RELEASE has been sent.
  func finish(_ request: Request) { state.withLock { $0.record?.finish(request.number) } }

  /// Whether a node is open, or may be mapped.
  func knows(_ node: NodeID) -> Bool { state.withLock { $0.openings[node] != nil } }

  /// Forgets a node that the kernel has forgotten, and that therefore is not open.
  func forget(_ node: NodeID) {
    let ended = state.withLock { state -> BackingFile? in
      guard var opening = state.openings[node] else { return nil }
      let ended = opening.file
      (opening.file, opening.counts) = (nil, OpeningRecord.Counts())
      set(opening, of: node, for: nil, &state)
      return ended
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

// MARK: - Direct writing

extension Passthrough {
  /// Whether a program has a file open or mapped for writing to it directly, as far as is known.
  func mayWrite(to node: NodeID) -> Bool {
    if written.load(ordering: .sequentiallyConsistent) == 0 { return false }
    return state.withLock { $0.openings[node]?.isWritten == true }
  }

  /// Whether a program has a file open for writing to it directly.
  func hasWriter(_ node: NodeID) -> Bool { state.withLock { ($0.openings[node]?.counts.writers ?? 0) > 0 } }

  /// Whether the layer has reported one closing more than there were.
  func isClosingReported(of node: NodeID) -> Bool {
    state.withLock { state in state.openings[node].map { $0.reportedClosings > $0.closings } ?? false }
  }

  /// Milliseconds after which the closing of a file has been reported.
  private static let reportTime: CInt = 1000

  /// Records that the layer has reported that a file was closed by a writer.
  func recordClosing(of node: NodeID) {
    state.withLock { $0.openings[node]?.reportedClosings += 1 }
  }

  /// The number of closings if a file is not open for writing, and none of them is still to be reported; nil otherwise.
  /// - Parameter areReported: whether closings are reported at all.
  func reportedClosings(of node: NodeID, areReported: Bool) -> Int? {
    state.withLock { state in
      guard let opening = state.openings[node], opening.counts.writers == 0, opening.counts.mayBeMapped else {
        return nil
      }
      let isReported =
        !areReported || opening.reportedClosings >= opening.closings
        || TimeSpec.monotonic.milliseconds(since: opening.lastClosing) >= Self.reportTime
      return isReported ? opening.closings : nil
    }
  }

  /// Records that a file is mapped for writing no more.
  /// - Parameter closings: of the time when that was found; a program may have opened it since.
  func endMapping(of node: NodeID, after closings: Int) -> Bool {
    state.withLock { state in
      guard var opening = state.openings[node], opening.counts.writers == 0, opening.counts.mayBeMapped,
        opening.closings == closings
      else { return false }
      opening.counts.mayBeMapped = false
      set(opening, of: node, for: nil, &state)
      return true
    }
  }
}
