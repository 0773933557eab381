import Containers
import Posix

/// How requests are answered that a layer keeps waiting.
public struct LayerPolicy: Sendable {
  /// Milliseconds after which a request no longer waits; nil for no limit.
  public var timeout: CInt?
  /// Whether it is then answered as if the layer were empty, instead of by EIO.
  public var skips: Bool
  /// Whether the layer has not answered for a while, so that the last known state is tried at once.
  public var isUnresponsive: Bool

  /// Creates a policy.
  public init(timeout: CInt? = nil, skips: Bool = false, isUnresponsive: Bool = false) {
    self.timeout = timeout
    self.skips = skips
    self.isUnresponsive = isUnresponsive
  }
}

/// The requests that were put off for a layer, until they are answered.
///
/// Each is processed by one of the threads of its layer. While that thread waits, the request may be answered
/// otherwise: from the last known state, by EINTR or by EIO. The kernel then refuses the thread's own reply (ENOENT).
///
/// Invariants: a queue has exactly the requests of its layer that are not running; those that were answered remain
/// in `entries` only while they run.
struct DeferredRequests {
  struct Entry {
    let buffer: RequestBuffer
    let layer: Int
    let since: TimeSpec
    var isRunning = false
    var isAnswered = false
    var isInterrupted = false
    var wasTriedWithKnown = false
    var isOverdue = false
  }

  /// What is to be done for a request now.
  enum Action {
    /// Try to answer it from the last known state.
    case answerFromKnown(RequestBuffer)
    /// Try to answer it as if the layer were empty.
    case answerWithoutLayer(RequestBuffer)
    case fail(RequestHeader, Errno)
  }

  /// Milliseconds after which it is tried to answer a request from the last known state.
  static let patience: CInt = 20
  /// Milliseconds after which a request by the daemon itself fails: the thread that made it serves others.
  static let ownPatience: CInt = 200
  /// Milliseconds after which a signal that the caller handles ends the wait.
  static let signalPatience: CInt = 1000

  private(set) var entries: [UInt64: Entry] = [:]
  private var queues: [Int: Queue<UInt64>] = [:]

  var isEmpty: Bool { entries.isEmpty }

  mutating func add(
    _ buffer: RequestBuffer, for layer: Int, isInterrupted: Bool, wasTriedWithKnown: Bool = false,
    now: TimeSpec
  ) {
    let unique = buffer.header.unique
    var entry = Entry(buffer: buffer, layer: layer, since: now)
    entry.isInterrupted = isInterrupted
    entry.wasTriedWithKnown = wasTriedWithKnown
    entries[unique] = entry
    queues[layer, default: Queue()].enqueue(unique)
  }

  /// Takes the next request of a layer that nothing has answered.
  mutating func next(for layer: Int) -> RequestBuffer? {
    while let unique = queues[layer]?.dequeue() {
      guard entries[unique]?.isRunning == false else { continue }
      entries[unique]?.isRunning = true
      return entries[unique]?.buffer
    }
    return nil
  }

  /// Records that a layer's thread has processed a request.
  mutating func finish(_ unique: UInt64) { entries[unique] = nil }

  /// Records that a request was answered in another way.
  mutating func answer(_ unique: UInt64) {
    guard let entry = entries[unique] else { return }
    if entry.isRunning { entries[unique]?.isAnswered = true } else { entries[unique] = nil }
  }

  /// - Returns: false if there is no such request.
  mutating func interrupt(_ unique: UInt64) -> Bool {
    guard entries[unique] != nil else { return false }
    entries[unique]?.isInterrupted = true
    return true
  }

  /// Finds what is to be done.
  /// - Parameters:
  ///   - isOwn: whether a thread of the daemon made a request.
  ///   - signals: the pending signals of a thread; nil if unknown.
  mutating func actions(
    now: TimeSpec, policy: (Int) -> LayerPolicy, isOwn: (Int32) -> Bool, signals: (Int32) -> PendingSignals?
  ) -> [Action] {
    var found: [Action] = []
    for (unique, entry) in entries where !entry.isAnswered {
      let header = entry.buffer.header
      let age = now.milliseconds(since: entry.since)
      if entry.isInterrupted, Self.endsWait(signals(header.caller), age) {
        found.append(.fail(header, .interrupted))
      } else if age >= Self.ownPatience, isOwn(header.caller) {
        found.append(.fail(header, .ioError))
      } else if !entry.isOverdue, let timeout = policy(entry.layer).timeout, age >= timeout {
        entries[unique]?.isOverdue = true
        found.append(
          policy(entry.layer).skips && header.isRepeatable
            ? .answerWithoutLayer(entry.buffer) : .fail(header, .ioError))
      } else if !entry.wasTriedWithKnown, age >= Self.patience {
        entries[unique]?.wasTriedWithKnown = true
        found.append(.answerFromKnown(entry.buffer))
      }
    }
    return found
  }

  /// Whether signals end the wait of a request of some age: at once those that kill, later those by which
  /// programs are stopped, and any if they are unknown.
  private static func endsWait(_ signals: PendingSignals?, _ age: CInt) -> Bool {
    guard let signals else { return age >= signalPatience }
    return signals.isFatal || (signals.isEnding && age >= signalPatience)
  }
}
