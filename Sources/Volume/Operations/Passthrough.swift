import Fuse
import Glibc
import Layers
import Posix
import Routing

/// The large files that are open, and which of them the kernel reads by itself from the layer's own file
/// (`-o passthrough`): at native speed, through the one cache that the layer's file system has.
///
/// The kernel demands that all who have a node open at a time have it open in the same way. So the first one
/// decides, and what was decided stands until the last one has closed it.
final class Passthrough: Sendable {
  /// How those who have a node open have it open.
  private struct Opening {
    /// nil: they read through the cache for this mount, by READ.
    let file: BackingFile?
    var count = 1
  }

  private struct State {
    /// Only nodes that are open.
    var openings: [NodeID: Opening] = [:]
    var opened: UInt64 = 0
    var refused: UInt64 = 0
    var lastRefusal: Errno?
  }

  /// Files below this size, in bytes, are read as ever: a READ or two fetch them, once.
  let smallest: UInt64
  private let kernel: any BackingFiles
  private let state = Locked(State())

  init(_ kernel: any BackingFiles, smallest: UInt64) {
    self.kernel = kernel
    self.smallest = smallest
  }

  /// One more opens a node that is open already.
  /// - Returns: as what it is open; nil inside for the cache. nil if it is not open.
  func join(_ node: NodeID) -> BackingFile?? {
    state.withLock { Self.join(node, &$0) }
  }

  /// Somebody opens a node.
  /// - Parameter file: what the kernel is to read in its stead; nil for the cache.
  /// - Returns: as what it is open now: another one may have come first.
  func open(_ node: NodeID, _ file: LayerFile?) -> BackingFile? {
    let backing = file.flatMap(register)
    let (decided, isFirst) = state.withLock { state in
      if let present = Self.join(node, &state) { return (present, false) }
      state.openings[node] = Opening(file: backing)
      if backing != nil { state.opened += 1 }
      return (backing, true)
    }
    if !isFirst, let backing { kernel.unregister(backing) }
    return decided
  }

  private static func join(_ node: NodeID, _ state: inout State) -> BackingFile?? {
    guard let opening = state.openings[node] else { return nil }
    state.openings[node]?.count += 1
    if opening.file != nil { state.opened += 1 }
    return .some(opening.file)
  }

  private func register(_ file: LayerFile) -> BackingFile? {
    do throws(Errno) {
      return try file.withDescriptor { descriptor throws(Errno) in try kernel.register(descriptor) }
    } catch {
      // The file is read as ever.
      state.withLock { state in
        state.refused += 1
        state.lastRefusal = error
      }
      return nil
    }
  }

  /// Somebody has closed a node.
  func close(_ node: NodeID) {
    let ended = state.withLock { state -> BackingFile? in
      guard let opening = state.openings[node] else { return nil }
      if opening.count > 1 {
        state.openings[node]?.count -= 1
        return nil
      }
      state.openings[node] = nil
      return opening.file
    }
    if let ended { kernel.unregister(ended) }
  }

  /// What became of it so far.
  var figures: PassthroughStatus {
    state.withLock { state in
      PassthroughStatus(
        smallest: smallest, open: state.openings.count { $0.value.file != nil }, opened: state.opened,
        refused: state.refused, reason: state.lastRefusal?.description)
    }
  }
}

extension Volume {
  /// Looks whether files can be passed through, if that is wanted. Once, before the first request but INIT.
  /// - Returns: why they cannot; nil if they can, or if it is not wanted.
  public func beginPassthrough(_ kernel: any BackingFiles) -> String? {
    guard let smallest = options.passthrough else { return nil }
    let obstacle = settings.passthroughDepth == 0 ? "no layer is a folder" : kernel.passthroughObstacle
    passthrough.withLock {
      $0 = obstacle.map { .impossible($0) } ?? .possible(Passthrough(kernel, smallest: smallest))
    }
    return obstacle
  }

  /// Over how many file systems the files lie that may be passed through, plus 1; 0 without any. Those of
  /// overlayfs, as containers have it, lie over one; then no overlayfs can be mounted over this mount.
  var passthroughDepth: Int {
    if options.passthrough == nil { return 0 }
    let folders = stack.layers.filter { $0.archive == nil }
    if folders.isEmpty { return 0 }
    return folders.contains { $0.root.isStacked } ? 2 : 1
  }

  public func openFile(_ node: NodeID, flags: CInt, reply: consuming Reply<ReplyKind.OpenFile>) {
    guard case .possible(let passthrough) = passthrough.withLock({ $0 }) else {
      return reply.fail(.noFunction)
    }
    if node == ControlFile.node || ResourceFolderNodes.contain(node) {
      _ = reply.sendCached()
      return
    }
    // The kernel would open the layer's file for that, too.
    if flags & O_ACCMODE != O_RDONLY { return reply.fail(.readOnlyFileSystem) }
    let file: BackingFile?
    do throws(Errno) {
      if let present = passthrough.join(node) {
        file = present
      } else {
        file = passthrough.open(node, try fileToPass(of: node, passthrough))
      }
    } catch {
      return reply.fail(error)
    }
    let isTaken = if let file { reply.send(file) } else { reply.sendCached() }
    if !isTaken { passthrough.close(node) }
  }

  public func release(_ node: NodeID) {
    if case .possible(let passthrough) = passthrough.withLock({ $0 }) { passthrough.close(node) }
  }

  /// The file that a node stands for, and from now on stays with; nil if it is too small, or if the kernel may
  /// keep another size of it.
  /// - Throws: ESTALE, and what opening it answers.
  private func fileToPass(of node: NodeID, _ passthrough: Passthrough) throws(Errno) -> LayerFile? {
    let isWanted = try table.withLock { table throws(Errno) in
      let slot = try table.slot(of: node)
      guard table[slot].kind == .regular, let size = table[slot].reportedSize else { return false }
      return size >= passthrough.smallest && stack.layers[Int(table[slot].layer)].archive == nil
    }
    return isWanted ? try openFile(of: node) : nil
  }
}

/// What `-o passthrough` came to.
enum PassthroughMode: Sendable {
  case unwanted
  /// With the reason.
  case impossible(String)
  case possible(Passthrough)

  /// What the mount tells of it; nil if it is not wanted.
  var status: PassthroughStatus? {
    switch self {
    case .unwanted: nil
    case .impossible(let reason): PassthroughStatus(reason: reason)
    case .possible(let passthrough): passthrough.figures
    }
  }
}

/// What a mount tells of the files that it passes through.
struct PassthroughStatus {
  /// From which size on, in bytes; nil if none can be.
  var smallest: UInt64?
  /// Nodes that are open that way now.
  var open = 0
  /// How often one was opened.
  var opened: UInt64 = 0
  /// How often the kernel refused one.
  var refused: UInt64 = 0
  /// Why none can be, or why the last one was refused.
  var reason: String?

  /// Writes the JSON object.
  func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("smallest", smallest)
      json.member("open", open)
      json.member("opened", opened)
      json.member("refused", refused)
      json.member("reason", reason)
    }
  }

  /// A line for a person.
  var line: String {
    guard let smallest else { return "passthrough: none: \(reason ?? "")" }
    let refusals = refused == 0 ? "" : "; refused: \(refused), the last one: \(reason ?? "")"
    return "passthrough, from \(smallest) bytes on: \(open) files now, opened \(opened) times\(refusals)"
  }
}
