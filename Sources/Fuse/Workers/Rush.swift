import Posix

/// While requests come one upon the other, idle processors wait awake (`CPULatencyRequest`). A thread of its own ends
/// that: whatever the others wait for, it is over some milliseconds after the rush.
final class Rush: Sendable {
  /// So many requests in a row that come soon are worth it.
  static let worth = 8
  /// It goes on while so many requests come in so many milliseconds.
  private static let (least, period): (UInt64, CInt) = (5, 5)

  private let processors: CPULatencyRequest
  private let requests = Counter()
  private let eventFD: EventFD
  private let isOver = Locked(false)
  private let thread = Locked<ThreadHandle?>(nil)

  /// Makes one; nil where processors are awake as it is, or cannot be kept so.
  /// - Throws: EAGAIN, EMFILE when the system has no room for it.
  init?(_ processors: CPULatencyRequest?) throws(Errno) {
    guard let processors else { return nil }
    self.processors = processors
    eventFD = try EventFD()
    let handle = ThreadHandle(try Thread(name: "rush") { [self] in watch() })
    thread.withLock { $0 = handle }
  }

  /// Whether it is under way.
  var isOn: Bool { processors.isActive }

  /// Notes a request.
  func noteRequest() { requests.add(1) }

  /// Has the processors wait awake from now on.
  func begin() {
    if isOn { return }
    processors.setActive(true)
    eventFD.signal()
  }

  /// Ends the thread; no request comes any more.
  func end() {
    isOver.withLock { $0 = true }
    eventFD.signal()
    thread.withLock { $0 }?.join()
  }

  private func watch() {
    var seen: UInt64 = 0
    while !isOver.withLock({ $0 }) {
      eventFD.wait(or: -1, milliseconds: isOn ? Self.period : -1)
      let count = requests.count
      if count - seen < Self.least { processors.setActive(false) }
      seen = count
    }
    processors.setActive(false)
  }
}
