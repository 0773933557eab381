import CLibrary
import Posix
import Synchronization

/// Passes the calls on a layer's files through, unless the calling thread must not wait for the layer.
///
/// A layer is *isolated* if its file system is remote or FUSE, or once a call on it has taken longer than
/// `slowAfter`. Then only threads that belong to the layer call it (`LayerAccess.waiting`); on others a call throws
/// `Errno.deferred`.
public final class LayerGate: Sendable {
  /// Milliseconds after which a layer that has not answered a call is isolated, and unresponsive.
  public static let slowAfter: CInt = 1000

  /// The layer's index in the stack.
  public let layer: Int
  /// Whether the layer was isolated from the beginning, by the type of its file system.
  public let isRemote: Bool
  /// Whether the layer's names are compared without case.
  let foldsNames: Bool
  /// The names that the view hides; nil for none.
  let hidden: HiddenNames?
  /// Whether the layer's directories identify a file by its rights, too, since other users can replace it
  /// (`FileStatus.identifiedByRights`).
  let identifiesByRights: Bool
  /// The names that several of its entries have.
  public let collisions = NameCollisions()
  /// The entries that are refused, since overlayfs keeps what they show in other layers.
  public let overlayReferences = OverlayReferences()
  private let isolated: Atomic<Bool>
  private let shared = Atomic(false)
  private let mergedTables = Locked<MergedTables?>(nil)
  private let calls = Locked(Calls())
  private let jobs = LayerJobs()

  private struct Calls {
    /// The calls that have not returned, with the times at which they began.
    var pending: [UInt64: TimeSpec] = [:]
    var next: UInt64 = 0
    /// Whether a request was answered without the layer since it answered last.
    var wasBypassed = false
    var timeout: CInt?
    var onRecovery: (@Sendable () -> Void)?
  }

  init(
    layer: Int, isRemote: Bool, foldsNames: Bool = false, identifiesByRights: Bool = false,
    hidden: HiddenNames? = nil
  ) {
    self.hidden = hidden
    self.layer = layer
    self.isRemote = isRemote
    self.foldsNames = foldsNames
    self.identifiesByRights = identifiesByRights
    isolated = Atomic(isRemote)
  }

  /// Makes a call on the layer.
  /// - Throws: `deferred` or `skipped` where the thread must not wait; what the body throws.
  @inline(__always)
  func call<Result: ~Copyable>(_ body: () throws(Errno) -> Result) throws(Errno) -> Result {
    if isolated.load(ordering: .relaxed) { return try isolatedCall(body) }
    let former = LayerCall.begin(layer)
    defer { LayerCall.end(former) }
    return try body()
  }

  @inline(never)
  private func isolatedCall<Result: ~Copyable>(
    _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    switch LayerAccess.current {
    case .waiting: break
    case .skipping where isOverdue: throw .skipped
    case .shared, .lastKnown, .skipping:
      LayerAccess.recordDeferral(to: layer)
      throw .deferred
    }
    let call = begin()
    defer { end(call) }
    let former = LayerCall.begin(layer)
    defer { LayerCall.end(former) }
    return try body()
  }

  private func begin() -> UInt64 {
    calls.withLock { calls in
      calls.next += 1
      calls.pending[calls.next] = .monotonic
      return calls.next
    }
  }

  private func end(_ call: UInt64) {
    let recovered = calls.withLock { calls -> (@Sendable () -> Void)? in
      calls.pending[call] = nil
      guard calls.wasBypassed else { return nil }
      calls.wasBypassed = false
      return calls.onRecovery
    }
    recovered?()
  }

  /// What merges the layer's tables of strings with those of other layers; nil if that was not asked for.
  public var tables: MergedTables? {
    get { mergedTables.withLock { $0 } }
    set { mergedTables.withLock { $0 = newValue } }
  }

  /// Whether the mount has one node for all spellings of a directory.
  public var sharesSpellings: Bool {
    get { shared.load(ordering: .relaxed) }
    set { shared.store(newValue, ordering: .relaxed) }
  }

  // MARK: - State

  /// Whether only threads that belong to the layer may call it.
  public var isIsolated: Bool { isolated.load(ordering: .relaxed) }

  /// Isolates the layer for the rest of the mount, since a call on it takes long.
  public func isolate() { isolated.store(true, ordering: .relaxed) }

  /// Since when the layer has not answered; nil while it does.
  public var unresponsiveSince: TimeSpec? {
    let oldest = calls.withLock { $0.pending.values.min() }
    guard let oldest, oldest.advanced(byMilliseconds: Self.slowAfter) < .monotonic else { return nil }
    return oldest
  }

  /// Seconds after which a request no longer waits for the layer; nil for none. What it has answered without the
  /// layer is invalidated by `onRecovery`, once the layer answers.
  public func configure(timeout: CInt?, onRecovery: @escaping @Sendable () -> Void) {
    calls.withLock { calls in
      calls.timeout = timeout
      calls.onRecovery = onRecovery
    }
  }

  /// Milliseconds after which a request no longer waits for the layer; nil for none.
  public var timeout: CInt? { calls.withLock { $0.timeout } }

  /// Whether a call has not returned within the timeout.
  public var isOverdue: Bool {
    calls.withLock { calls in
      guard let timeout = calls.timeout, let oldest = calls.pending.values.min() else { return false }
      return oldest.advanced(byMilliseconds: timeout) <= .monotonic
    }
  }

  /// Records that a request is answered without the layer.
  func recordBypass() { calls.withLock { $0.wasBypassed = true } }

  /// Whether the calling thread does without the layer's present attributes.
  @inline(__always)
  var isBypassed: Bool { isIsolated && isBypassedByThread }

  @inline(never)
  private var isBypassedByThread: Bool {
    LayerAccess.current.usesKnownState
  }

  /// Whether the calling thread takes the layer as empty.
  @inline(__always)
  var isSkipped: Bool { isIsolated && isSkippedByThread }

  @inline(never)
  private var isSkippedByThread: Bool {
    guard LayerAccess.current == .skipping, isOverdue else { return false }
    recordBypass()
    return true
  }

  // MARK: - Jobs

  /// Runs a job on a thread that belongs to the layer, after those queued before.
  public func run(_ job: @escaping @Sendable () -> Void) { jobs.add(job) }

  /// Closes a file of the layer. The close of a file on FUSE or NFS waits for the server.
  func close(_ file: CInt) {
    if isIsolated { run { CLibrary.close(file) } } else { CLibrary.close(file) }
  }
}
