import Containers
import Fuse
import Layers
import Posix

/// Files that are open for writing. The kernel sends neither OPEN nor RELEASE, so they are opened at the first WRITE, and
/// closed soon after the last: while one is open, the layer's file cannot be executed (ETXTBSY), and programs that watch
/// the layer wait for IN_CLOSE_WRITE.
final class WriteDescriptors: Sendable {
  /// The most files that are open at a time.
  private let limit: Int
  /// Milliseconds without a WRITE after which a file is closed, at the next look of the watchdog.
  private static let idleTime: CInt = 100

  private final class OpenFile {
    let file: LayerFile
    let identity: FileIdentity
    let node: NodeID
    var lastUse: TimeSpec

    init(_ file: LayerFile, _ identity: FileIdentity, _ node: NodeID, lastUse: TimeSpec) {
      (self.file, self.identity, self.node, self.lastUse) = (file, identity, node, lastUse)
    }
  }

  /// Files are closed after the lock is released, since closing one can take long.
  private let files = Locked(LRUCache<NodeID, OpenFile>(countLimit: .max))
  private let watchdog = Locked<LayerWatchdog?>(nil)
  /// Counts what is closed; nil where events of our own changes cannot be told from those of others.
  private let own: OwnChanges?

  /// - Parameter budget: how many files the mount may keep open in all.
  init(_ own: OwnChanges? = nil, budget: Int = .max) {
    self.own = own
    limit = min(64, max(1, budget / 4))
  }

  func start(_ watchdog: LayerWatchdog) {
    watchdog.add(self)
    self.watchdog.withLock { $0 = watchdog }
  }

  /// Closes all files. Called after the watchdog has ended.
  func stop() {
    watchdog.withLock { $0 = nil }
    close { _ in true }
  }

  /// Closes files from the least recently used on.
  /// - Parameter isClosed: whether to close one; the first that stays ends it.
  private func close(where isClosed: (OpenFile) -> Bool) {
    let closed = files.withLock { files in
      var closed: [OpenFile] = []
      while let oldest = files.oldest, isClosed(oldest) {
        files.removeOldest()
        closed.append(oldest)
      }
      return closed
    }
    for file in closed { release(file) }
  }

  /// Closes a file, unless a request still writes to it, which does so at its end.
  private func release(_ file: OpenFile?) {
    guard let file else { return }
    own?.willClose(file.node)
    withExtendedLifetime(file) {}
  }

  /// The file of a node, if it is open for writing.
  /// - Parameter identity: that of the file to which the node refers now: it may have been bound to another one.
  func file(of node: NodeID, identity: FileIdentity) -> LayerFile? {
    let now = TimeSpec.monotonic
    return files.withLock { files in
      guard let found = files.value(for: node), found.identity == identity else { return nil }
      found.lastUse = now
      return found.file
    }
  }

  func keep(_ file: LayerFile, _ identity: FileIdentity, of node: NodeID) {
    let now = TimeSpec.monotonic
    let closed = files.withLock { files in
      let closed = files.count < limit ? files.remove(node) : files.removeOldest()
      files.insert(OpenFile(file, identity, node, lastUse: now), for: node)
      return closed
    }
    release(closed)
    watchdog.withLock { $0 }?.arm()
  }

  func close(_ node: NodeID) {
    release(files.withLock { $0.count == 0 ? nil : $0.remove(node) })
  }

  var count: Int { files.withLock { $0.count } }
}

extension WriteDescriptors: LayerWatchdog.Loop {
  func check(now: TimeSpec, _ isolate: (Int) -> Void) -> Bool {
    close { now.milliseconds(since: $0.lastUse) >= Self.idleTime }
    return count > 0
  }
}
