import CLibrary
import Posix
import Routing

/// Reports the results of a control file as they arrive, until the mount ends.
public final class ResultListener: Sendable {
  /// A report of the listener.
  public enum Event: Sendable {
    case result(ResultLine)
    /// The ring of results dropped these sequence numbers before they were read.
    case missed(ClosedRange<UInt64>)
  }

  /// Why ``run(_:)`` returned.
  public enum End: Sendable {
    case cancelled
    case unmounted
  }

  private let location: ControlFileLocation
  private let cancellation: CancellationPipe
  private let last: Locked<UInt64>

  /// Asks for the newest result to find where to begin.
  /// - Parameter since: the sequence number after which results are reported; nil reports only new results.
  /// - Throws: as ``ControlFileLocation/open(_:)``; EACCES without permission to read; EMFILE.
  public init(_ location: ControlFileLocation, since: UInt64?) throws(Errno) {
    let newest = try location.open([.read]).newestSequence()
    // Sequence numbers begin at 1 with each mount: a higher one than the newest is of an earlier mount.
    last = Locked(since.map { $0 > newest ? 0 : $0 } ?? newest)
    cancellation = try CancellationPipe()
    self.location = location
  }

  /// The sequence number of the last result that was read.
  public var lastSequence: UInt64 { last.withLock { $0 } }

  /// Makes ``run(_:)`` return soon. A report that is in progress continues; no other begins.
  public func cancel() { cancellation.cancel() }

  /// Reports results on the calling thread, in order.
  /// - Throws: ENOTCONN if the daemon has died and its mount is left.
  public func run(_ report: (Event) -> Void) throws(Errno) -> End {
    do throws(Errno) {
      while try listen(report) {
        // The daemon asked its clients to close the file, so that it can be unmounted. Listen again if it is not.
        for _ in 0..<30 {
          if cancellation.wait(milliseconds: 100) { return .cancelled }
          if !location.isMounted { return .unmounted }
        }
      }
      return .cancelled
    } catch {
      if cancellation.isCancelled { return .cancelled }
      guard error.isEndOfMount else { throw error }
      return try end(after: error)
    }
  }

  /// What ended the mount: an unmount, after which the daemon exits, or the death of the daemon, which leaves the mount.
  private func end(after error: Errno) throws(Errno) -> End {
    guard error == .socketNotConnected || error.rawValue == ECONNABORTED else { return .unmounted }
    // The kernel ends the connection before it takes the mount away.
    for _ in 0..<10 {
      if !location.isMounted { return .unmounted }
      if cancellation.wait(milliseconds: 100) { return .cancelled }
    }
    throw .socketNotConnected
  }

  /// Reports results until the daemon hangs up; returns false if cancelled.
  private func listen(_ report: (Event) -> Void) throws(Errno) -> Bool {
    let file = try location.open([.read])
    try reportNew(in: file, report)
    while true {
      switch file.wait(cancellation: cancellation) {
      case .cancelled: return false
      case .hangup:
        // A result may have arrived together with the hangup.
        try reportNew(in: file, report)
        return !cancellation.isCancelled
      case .readable: try reportNew(in: file, report)
      }
    }
  }

  private func reportNew(in file: borrowing ControlFileHandle, _ report: (Event) -> Void) throws(Errno) {
    var reader = ResultReader(after: lastSequence)
    var batch: ResultReader.Batch
    repeat {
      batch = try reader.read(file)
      if let missed = batch.missed { deliver(.missed(missed), upTo: missed.upperBound, report) }
      for result in batch.results { deliver(.result(result), upTo: result.sequence, report) }
    } while batch.hasMore && !cancellation.isCancelled
  }

  private func deliver(_ event: Event, upTo sequence: UInt64, _ report: (Event) -> Void) {
    if cancellation.isCancelled { return }
    last.withLock { $0 = sequence }
    report(event)
  }
}

extension Errno {
  /// Whether the errno value says that the mount is gone.
  public var isEndOfMount: Bool {
    self == .socketNotConnected || self == .inappropriateIOCTLForDevice || self == .noSuchFileOrDirectory
      || rawValue == ECONNABORTED
  }
}
