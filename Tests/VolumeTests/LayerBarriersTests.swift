import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers
@testable import Volume

@Suite struct LayerBarriersTests {
  private func layers(_ folder: TemporaryFolder) throws -> [Layer] {
    try (0..<2).map { index in
      .directory(
        try DirectoryLayer(path: folder.folder(ByteString("\(index)")).bytes, index: index, covered: nil))
    }
  }

  @Test("a barrier waits for the worker's jobs and for those of isolated layers")
  func jobs() throws {
    let layers = try layers(try TemporaryFolder())
    layers[1].gate.isolate()
    let barriers = LayerBarriers(layers, try WatcherSignal())
    let worker = SerialWorker(name: "test")
    let watchdog = try LayerWatchdog { _ in }
    try worker.start(watchdog)
    defer { worker.stop() }
    let (isWorkerFree, isLayerFree, reached) = (Locked(false), Locked(false), Locked(0))
    _ = worker.add { while !isWorkerFree.withLock({ $0 }) { usleep(1000) } }
    layers[1].gate.run { while !isLayerFree.withLock({ $0 }) { usleep(1000) } }
    barriers.add(after: worker) { reached.withLock { $0 += 1 } }
    #expect(barriers.isWaiting)
    isWorkerFree.withLock { $0 = true }
    let isWorkerDone = Locked(false)
    _ = worker.add { isWorkerDone.withLock { $0 = true } }
    #expect(eventually(within: 20) { isWorkerDone.withLock { $0 } })
    barriers.abandonUnresponsive()
    #expect(reached.withLock { $0 } == 0, "the layer answers")
    isLayerFree.withLock { $0 = true }
    #expect(eventually(within: 20) { reached.withLock { $0 } == 1 })
    #expect(!barriers.isWaiting)
  }

  @Test("a barrier does not wait for a layer that does not answer", .timeLimit(.minutes(1)))
  func unresponsiveLayer() throws {
    let layers = try layers(try TemporaryFolder())
    let gate = layers[1].gate
    gate.isolate()
    let barriers = LayerBarriers(layers, try WatcherSignal())
    let (isFree, reached) = (Locked(false), Locked(0))
    defer { isFree.withLock { $0 = true } }
    gate.run {
      try? gate.call { () throws(Errno) in while !isFree.withLock({ $0 }) { usleep(1000) } }
    }
    barriers.add(after: nil) { reached.withLock { $0 += 1 } }
    let isReached = eventually(within: 20) {
      barriers.abandonUnresponsive()
      return reached.withLock { $0 } == 1
    }
    #expect(isReached)
    #expect(gate.unresponsiveSince != nil)
    barriers.add(after: nil) { reached.withLock { $0 += 1 } }
    #expect(reached.withLock { $0 } == 2, "at once")
  }

  @Test("checks of one layer are coalesced while they wait")
  func coalescing() throws {
    let layers = try layers(try TemporaryFolder())
    let checks = RootCheckQueue(LayerBarriers(layers, try WatcherSignal()))
    let found = Locked<[[UInt8]]>([])
    try checks.start(LayerWatchdog { _ in })
    defer { checks.stop() }
    let isFree = Locked(false)
    checks.add(.path, of: layers[1].gate) { check in
      found.withLock { $0.append([1, check.rawValue]) }
      while !isFree.withLock({ $0 }) { usleep(1000) }
    }
    #expect(eventually(within: 20) { found.withLock { $0 } == [[1, RootCheck.path.rawValue]] })
    for check in [RootCheck.mount, .archiveWritten, .mount] {
      checks.add(check, of: layers[1].gate) { check in found.withLock { $0.append([1, check.rawValue]) } }
    }
    let isDone = Locked(false)
    checks.afterChecks { isDone.withLock { $0 = true } }
    isFree.withLock { $0 = true }
    #expect(eventually(within: 20) { isDone.withLock { $0 } })
    let both: RootCheck = [.mount, .archiveWritten]
    #expect(found.withLock { $0 } == [[1, RootCheck.path.rawValue], [1, both.rawValue]])
  }
}
