/// Which of the threads that answer requests wait for the next one.
///
/// The kernel wakes the thread that has waited longest. If all of them waited, they would take turns, and each
/// request would find a thread that has slept, on another processor. So one waits; the others are parked until
/// there is more than one request, or until the one that took the last is held up, by a disk for example.
///
/// The last is noticed by one of those that are parked, the lookout, which looks every millisecond while
/// requests come, and sleeps while none do.
///
/// Invariants: every thread is waiting, busy or parked; if one is parked, one of the parked is the lookout.
struct LeaderFollowers {
  /// How often in a row the lookout finds nothing new before it sleeps.
  static let patience = 20

  /// Threads that wait for a request, or are about to.
  private(set) var waiting = 0
  /// Threads that answer one.
  private(set) var busy = 0
  /// Threads that are off duty; the last is called first.
  private(set) var parked: [Int] = []
  /// The one of them that looks whether somebody is held up.
  private(set) var lookout: Int?
  /// Whether it sleeps until there is a request.
  private(set) var lookoutSleeps = false
  /// Whether a busy one answers no request, but does something else.
  private var isInMoment = false
  private var received: UInt64 = 0
  private var seen: UInt64 = 0
  private var quiet = 0

  /// A thread comes on duty for the first time: one of them begins to wait.
  /// - Returns: whether it is this one; if not, it is parked.
  mutating func join(_ thread: Int) -> Bool {
    if waiting + busy == 0 {
      waiting = 1
      return true
    }
    park(thread)
    return false
  }

  /// A waiting thread got a request.
  /// - Parameter hasMore: whether another one is there already.
  /// - Returns: the parked threads to be woken: one that now waits in its place (`called`), and the lookout, if
  ///   it slept.
  mutating func receive(hasMore: Bool) -> (called: Int?, lookout: Int?) {
    waiting -= 1
    busy += 1
    received &+= 1
    let called = hasMore && waiting == 0 ? call() : nil
    guard lookoutSleeps, let lookout else { return (called, nil) }
    lookoutSleeps = false
    quiet = 0
    return (called, lookout)
  }

  /// A waiting thread wants to do something else for a moment, as no request is there. Should it be held up by
  /// that, the lookout takes over.
  /// - Returns: whether it may: one at a time, and only if there is somebody to take over.
  mutating func beginIdleWork() -> Bool {
    guard !isInMoment, waiting > 1 || (lookout != nil && !lookoutSleeps) else { return false }
    isInMoment = true
    waiting -= 1
    busy += 1
    return true
  }

  /// It waits again, maybe beside the one that took over, until one of them has answered a request.
  mutating func endIdleWork() {
    isInMoment = false
    busy -= 1
    waiting += 1
  }

  /// A thread has answered its request.
  /// - Parameter hasMore: whether another one is there; asked for only if somebody else waits.
  /// - Returns: whether it is to wait for the next one; if not, it is parked.
  mutating func finish(_ thread: Int, hasMore: () -> Bool) -> Bool {
    busy -= 1
    if waiting == 0 || hasMore() {
      waiting += 1
      return true
    }
    park(thread)
    return false
  }

  /// A parked thread was woken, or its time was over.
  /// - Returns: whether it is on duty, and waits for requests.
  mutating func wake(_ thread: Int) -> Bool {
    // Whoever called it has taken it off the list.
    guard parked.contains(thread) else { return true }
    guard lookout == thread, !lookoutSleeps else { return false }
    if received == seen {
      if waiting == 0 {
        parked.removeAll { $0 == thread }
        waiting += 1
        lookout = parked.last
        return true
      }
      quiet += 1
      lookoutSleeps = quiet >= Self.patience
    } else {
      quiet = 0
    }
    seen = received
    return false
  }

  /// How long a parked thread may sleep, in milliseconds; -1 for ever.
  func sleep(of thread: Int) -> CInt { lookout == thread && !lookoutSleeps ? 1 : -1 }

  private mutating func call() -> Int? {
    guard let thread = parked.popLast() else { return nil }
    waiting += 1
    if lookout == thread { lookout = parked.last }
    return thread
  }

  private mutating func park(_ thread: Int) {
    parked.append(thread)
    if lookout == nil {
      lookout = thread
      lookoutSleeps = false
      quiet = 0
    }
  }
}
