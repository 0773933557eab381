import Posix

/// The `unique`s of interrupted requests that are not put off. A request that is unknown is kept for a while: the
/// worker that has read it may not have recorded it yet.
struct InterruptedRequests {
  private struct Look {
    /// How many more times the request is looked for.
    var left = lifetime
    /// What its worker was doing when it was seen last, and since when.
    var work: (activity: ThreadActivity, since: TimeSpec)?
  }

  private static let lifetime = 16
  /// Milliseconds in the same call on a layer after which a worker counts as waiting for it.
  private static let layerPatience: CInt = 10
  /// Milliseconds outside of such calls after which a worker counts as waiting for one that is.
  private static let patience: CInt = 500
  private var looks: [UInt64: Look] = [:]

  var isEmpty: Bool { looks.isEmpty }
  var all: [UInt64] { Array(looks.keys) }

  mutating func add(_ unique: UInt64) { looks[unique] = Look() }

  /// - Returns: whether it was there.
  mutating func remove(_ unique: UInt64) -> Bool { looks.removeValue(forKey: unique) != nil }

  /// Records that no worker processes it.
  mutating func expire(_ unique: UInt64) {
    guard let left = looks[unique]?.left else { return }
    if left > 1 { looks[unique]?.left = left - 1 } else { looks[unique] = nil }
  }

  /// Whether the worker that processes a request goes on with it, instead of waiting for a layer.
  mutating func isAtWork(on unique: UInt64, _ activity: ThreadActivity?, now: TimeSpec) -> Bool {
    guard let activity, let look = looks[unique] else { return false }
    guard let work = look.work, work.activity == activity else {
      looks[unique]?.work = (activity, now)
      return true
    }
    let patience = activity.layer == nil ? Self.patience : Self.layerPatience
    return now.milliseconds(since: work.since) < patience
  }
}
