import Glibc
import Posix
import Routing

/// One listening of a ``RouteListener``, on a thread of its own.
final class ListenerSession: Sendable {
  /// What it tells of itself.
  enum Report: Sendable {
    case posted(PostedResult)
    /// Results that were gone before they could be read, by their numbers.
    case missed(ClosedRange<UInt64>)
    /// The mount is gone, or cannot be listened to any more: then the error tells why.
    case ended(Errno?)
  }

  private let mountPoint: [UInt8]
  private let cancellation: CancellationPipe
  private let last: Locked<UInt64>
  private let report: @Sendable (Report) -> Void

  /// Begins to listen.
  /// - Parameters:
  ///   - since: results up to this one are not reported; nil: those that are there already.
  ///   - report: called on the listening's thread, one report after the other.
  /// - Throws: as `ControlFile` does, EBUSY while others write to it without a pause.
  static func begin(
    at mountPoint: [UInt8], since: UInt64?, report: @escaping @Sendable (Report) -> Void
  ) throws(Errno) -> ListenerSession {
    let mountPoint = try realPath(mountPoint)
    let file = try ControlFile(of: mountPoint)
    guard let results = try file.results() else { throw .resourceBusy }
    let newest = results.last?.sequence ?? 0
    // A number of an earlier mount says nothing here.
    let last = since.map { $0 > newest ? 0 : $0 } ?? newest
    let listening = ListenerSession(mountPoint, cancellation: try CancellationPipe(), last: last, report)
    let first = Locked<ControlFile?>(file)
    try Thread.startDetached(name: "routes") {
      listening.run(first.withLock { $0.take() })
    }
    return listening
  }

  private init(
    _ mountPoint: [UInt8], cancellation: consuming CancellationPipe, last: UInt64,
    _ report: @escaping @Sendable (Report) -> Void
  ) {
    self.mountPoint = mountPoint
    self.cancellation = cancellation
    self.last = Locked(last)
    self.report = report
  }

  /// The number of the last result that was read.
  var lastSequence: UInt64 { last.withLock { $0 } }

  /// Has it end soon. It may still be reporting something at this moment, but reports nothing after that.
  func end() { cancellation.call() }

  private var isOver: Bool { cancellation.wait(milliseconds: 0) }

  private func run(_ first: consuming ControlFile?) {
    var file = first
    let mount = file?.mount
    while true {
      do throws(Errno) {
        if file == nil { file = try ControlFile(of: mountPoint) }
        guard let open = file.take(), try listen(to: open) else { return }
      } catch {
        if isOver { return }
        return report(.ended(error.isEndOfMount ? nil : error))
      }
      // Sent away, with the file closed, so that the mount can be unmounted; if it was not, the listening goes
      // on.
      for _ in 0..<30 {
        if cancellation.wait(milliseconds: 100) { return }
        if ControlFile.mount(at: mountPoint) != mount { return report(.ended(nil)) }
      }
    }
  }

  /// Reports results until we are told to go.
  /// - Returns: false if the listening is called off.
  private func listen(to file: consuming ControlFile) throws(Errno) -> Bool {
    try reportNew(in: file)
    while true {
      switch file.wait(orFor: cancellation) {
      case .cancellation: return false
      case .end:
        // Also what came in the same moment.
        try reportNew(in: file)
        return !isOver
      case .result:
        // Who is told while yet another writes may read what was there before.
        var patience = 20
        while try !reportNew(in: file), patience > 0 {
          if cancellation.wait(milliseconds: 1) { return false }
          patience -= 1
        }
        while try reportNew(in: file) {}
      }
    }
  }

  /// - Returns: whether there was a new one.
  @discardableResult
  private func reportNew(in file: borrowing ControlFile) throws(Errno) -> Bool {
    guard let results = try file.results() else { return false }
    let before = lastSequence
    if let first = results.first, first.sequence - 1 > before {
      tell(.missed(before + 1...first.sequence - 1), last: first.sequence - 1)
    }
    for result in results where result.sequence > before {
      if let posted = result.posted {
        tell(.posted(posted), last: result.sequence)
      } else {
        last.withLock { $0 = result.sequence }
      }
      if isOver { return false }
    }
    return lastSequence != before
  }

  private func tell(_ news: Report, last sequence: UInt64) {
    if isOver { return }
    last.withLock { $0 = sequence }
    report(news)
  }
}

extension Errno {
  /// Whether the mount is gone.
  fileprivate var isEndOfMount: Bool {
    self == .socketNotConnected || self == .inappropriateIOCTLForDevice || self == .noSuchFileOrDirectory
      || rawValue == ECONNABORTED
  }
}
