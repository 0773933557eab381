import Posix

/// The `unique`s of interrupted requests that are not put off. A request that is unknown is kept for a while: the
/// worker that has read it may not have recorded it yet.
struct InterruptedRequests {
  private struct Look {
    /// When the request was seen last, or else was interrupted.
    var seen: TimeSpec
    /// Since when its caller was seen to be killed while its worker was at work.
    var killed: TimeSpec?
    /// What its worker was doing when it was seen last, and since when.
    var work: (activity: ThreadActivity, since: TimeSpec)?
  }

  /// Milliseconds for which a request that is unknown is kept.
  private static let lifetime: CInt = 200
  /// Milliseconds in the same call on a layer after which a worker counts as waiting for it.
  private static let layerPatience: CInt = 100
  /// Milliseconds outside of such calls after which a worker counts as waiting for one that is.
  private static let patience: CInt = 500
  /// Milliseconds after which no work is waited for, such as that of a long copy.
  private static let totalPatience: CInt = 2000
  private var looks: [UInt64: Look] = [:]

  var isEmpty: Bool { looks.isEmpty }
  var all: [UInt64] { Array(looks.keys) }

  mutating func add(_ unique: UInt64, now: TimeSpec) { looks[unique] = Look(seen: now) }

  /// - Returns: whether it was there.
  mutating func remove(_ unique: UInt64) -> Bool { looks.removeValue(forKey: unique) != nil }

  /// Records whether a worker processes it, or another thread will reply.
  mutating func see(_ unique: UInt64, _ isKnown: Bool, now: TimeSpec) {
    guard let look = looks[unique] else { return }
    if isKnown {
      looks[unique]?.seen = now
    } else if now.milliseconds(since: look.seen) >= Self.lifetime {
      looks[unique] = nil
    }
  }

  /// Whether the worker that processes the request of a caller that is being killed goes on with it, instead of waiting for
  /// a layer.
  mutating func isAtWork(on unique: UInt64, _ activity: ThreadActivity?, now: TimeSpec) -> Bool {
    guard let activity, let look = looks[unique] else { return false }
    if let killed = look.killed, now.milliseconds(since: killed) >= Self.totalPatience { return false }
    if look.killed == nil { looks[unique]?.killed = now }
    guard let work = look.work, work.activity == activity else {
      looks[unique]?.work = (activity, now)
      return true
    }
    let patience = activity.layer == nil ? Self.patience : Self.layerPatience
    return now.milliseconds(since: work.since) < patience
  }
}
