import ControlClient
import Foundation
import CLibrary
import Posix

/// Watches a bundle's directories on a thread of its own, and keeps what has changed until it is taken.
final class BundleWatcher: Sendable {
  private struct Pending {
    var paths: Set<[UInt8]> = []
    var isAnything = false
  }

  /// One element, at most, says that there is a change to take.
  let signals: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation
  private let record = Record()
  /// Ends the thread.
  private let cancellation: Locked<Cancellation>

  /// More changed paths than these are one change of anything.
  private static let maxPaths = 4096

  /// What the thread fills, which must not keep the watcher.
  private final class Record: Sendable {
    let pending = Locked(Pending())
    /// Why the watch has ended, until it is taken.
    let failure = Locked<POSIXError?>(nil)
  }

  private final class Cancellation: Sendable {
    let pipe: CancellationPipe
    /// Whether another thread goes on with other directories.
    let isReplaced = Locked(false)
    init() throws(Errno) { pipe = try CancellationPipe() }
  }

  /// Begins to watch.
  init(roots: [WatchedRoot]) throws(Errno) {
    let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    (self.signals, self.continuation) = (signals, continuation)
    cancellation = Locked(try Self.start(roots, record, continuation))
  }

  /// Watches other directories from now on, which is a change of anything.
  func follow(_ roots: [WatchedRoot]) {
    do throws(Errno) {
      let next = try Self.start(roots, record, continuation)
      let former = cancellation.withLock { cancellation in
        defer { cancellation = next }
        return cancellation
      }
      former.isReplaced.withLock { $0 = true }
      former.pipe.cancel()
      record.pending.withLock { $0.isAnything = true }
      continuation.yield(())
    } catch { Self.end(record, continuation, error) }
  }

  deinit { cancellation.withLock { $0 }.pipe.cancel() }

  private static func start(
    _ roots: [WatchedRoot], _ record: Record,
    _ continuation: AsyncStream<Void>.Continuation
  ) throws(Errno) -> Cancellation {
    let cancellation = try Cancellation()
    let tree = Tree(WatchedTree(try Inotify(), roots: roots), process: roots.first?.process)
    try tree.value.watchRoots()
    try Posix.Thread.startDetached(name: "changes") { run(tree, record, cancellation, continuation) }
    return cancellation
  }

  private static func end(
    _ record: Record, _ continuation: AsyncStream<Void>.Continuation, _ error: Errno
  ) {
    record.failure.withLock { $0 = POSIXError(error) }
    continuation.finish()
  }

  /// What has ended the watch; nil if nothing has, or after the first call.
  func takeFailure() -> POSIXError? {
    record.failure.withLock { failure in
      defer { failure = nil }
      return failure
    }
  }

  /// What has changed since the last call; nil if nothing has.
  func takeChange() -> BundleChange? {
    let pending = record.pending.withLock { pending in
      defer { pending = Pending() }
      return pending
    }
    if pending.isAnything { return BundleChange(paths: nil) }
    if pending.paths.isEmpty { return nil }
    return BundleChange(paths: Set(pending.paths.map { String(decoding: $0, as: UTF8.self) }))
  }

  /// Carries the tree to its thread, which alone uses it from then on.
  private final class Tree: @unchecked Sendable {
    var value: WatchedTree
    /// nil unless a mount is watched.
    let process: MountProcess?

    init(_ value: consuming WatchedTree, process: MountProcess?) {
      self.value = value
      self.process = process
    }
  }

  private static func run(
    _ tree: Tree, _ record: Record, _ cancellation: Cancellation,
    _ continuation: AsyncStream<Void>.Continuation
  ) {
    var polled = [
      pollfd(fd: tree.value.rawValue, events: Int16(POLLIN), revents: 0),
      pollfd(fd: cancellation.pipe.readEnd, events: Int16(POLLIN), revents: 0),
      pollfd(fd: tree.process?.rawValue ?? -1, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      _ = poll(&polled, 3, -1)
      if cancellation.pipe.isCancelled {
        if !cancellation.isReplaced.withLock({ $0 }) { continuation.finish() }
        return
      }
      if polled[2].revents != 0, let process = tree.process {
        if process.hasLeftMount(cancellation.pipe) {
          return end(record, continuation, .socketNotConnected)
        }
        polled[2].fd = -1
      }
      do throws(Errno) {
        let outcome = try tree.value.read()
        if case .unmounted = outcome { return continuation.finish() }
        if add(outcome, to: record) { continuation.yield(()) }
      } catch {
        return end(record, continuation, error)
      }
    }
  }

  /// - Returns: whether there is a change.
  private static func add(_ outcome: WatchedTree.Outcome, to record: Record) -> Bool {
    record.pending.withLock { pending in
      switch outcome {
      case .changed(let changes): pending.paths.formUnion(changes.map(\.path.joinedPath))
      case .anything, .unmounted: pending.isAnything = true
      }
      if pending.paths.count > maxPaths { pending = Pending(paths: [], isAnything: true) }
      return pending.isAnything || !pending.paths.isEmpty
    }
  }
}
