import Fuse
import Layers
import Posix

/// Files that are open for writing. The kernel sends neither OPEN nor RELEASE, so they are opened at the first WRITE, and
/// closed soon after the last: while one is open, the layer's file cannot be executed (ETXTBSY), and programs that watch
/// the layer wait for IN_CLOSE_WRITE.
final class WriteDescriptors: Sendable {
  /// The most files that are open at a time.
  static let limit = 64
  /// Milliseconds without a WRITE after which a file is closed, at the next look of the watchdog.
  private static let idleTime: CInt = 100

  private struct Entry {
    let file: LayerFile
    var lastUse: TimeSpec
  }

  private let entries = Locked<[NodeID: Entry]>([:])
  private let watchdog = Locked<LayerWatchdog?>(nil)

  func start(_ watchdog: LayerWatchdog) {
    watchdog.add(self)
    self.watchdog.withLock { $0 = watchdog }
  }

  /// Closes all files. Called after the watchdog has ended.
  func stop() {
    watchdog.withLock { $0 = nil }
    let closed = entries.withLock { entries in
      defer { entries = [:] }
      return entries
    }
    withExtendedLifetime(closed) {}
  }

  /// The file of a node, if it is open for writing.
  func file(of node: NodeID) -> LayerFile? {
    let now = TimeSpec.monotonic
    return entries.withLock { entries in
      entries[node]?.lastUse = now
      return entries[node]?.file
    }
  }

  func keep(_ file: LayerFile, of node: NodeID) {
    let now = TimeSpec.monotonic
    let closed = entries.withLock { entries -> Entry? in
      let oldest = entries.count < Self.limit ? nil : entries.min { $0.value.lastUse < $1.value.lastUse }
      entries[node] = Entry(file: file, lastUse: now)
      return oldest.flatMap { entries.removeValue(forKey: $0.key) }
    }
    withExtendedLifetime(closed) {}
    watchdog.withLock { $0 }?.arm()
  }

  func close(_ node: NodeID) {
    let closed = entries.withLock { $0.isEmpty ? nil : $0.removeValue(forKey: node) }
    withExtendedLifetime(closed) {}
  }

  var count: Int { entries.withLock { $0.count } }
}

extension WriteDescriptors: LayerWatchdog.Loop {
  func look(now: TimeSpec, _ isolate: (Int) -> Void) -> Bool {
    let (closed, isBusy) = entries.withLock { entries in
      let idle = entries.filter { now.milliseconds(since: $0.value.lastUse) >= Self.idleTime }
      for node in idle.keys { entries[node] = nil }
      return (idle, !entries.isEmpty)
    }
    withExtendedLifetime(closed) {}
    return isBusy
  }
}
