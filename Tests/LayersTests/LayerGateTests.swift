import Posix
import TestSupport
import Testing

@testable import Layers

@Suite struct LayerGateTests {
  private func call(_ gate: LayerGate, _ access: LayerAccess) throws(Errno) -> Int {
    try LayerAccess.with(access) { () throws(Errno) in try gate.call { 1 } }
  }

  @Test("a healthy layer is called by any thread, an isolated one only by those that may wait")
  func access() throws {
    let gate = LayerGate(layer: 3, isRemote: false)
    for access in [LayerAccess.waiting, .shared, .lastKnown, .skipping] {
      #expect(try call(gate, access) == 1)
    }
    gate.isolate()
    #expect(try call(gate, .waiting) == 1)
    for access in [LayerAccess.shared, .lastKnown, .skipping] {
      LayerAccess.clearDeferral()
      #expect(throws: Errno.deferred) { _ = try call(gate, access) }
      #expect(LayerAccess.deferredLayer == 3)
    }
    #expect(LayerGate(layer: 0, isRemote: true).isIsolated)
  }

  @Test("an overdue layer is skipped, and reports when it answers again")
  func skipping() throws {
    let gate = LayerGate(layer: 0, isRemote: true)
    let recoveries = Counter()
    gate.configure(timeout: 1) { recoveries.add(1) }
    let (begun, release) = (BlockingQueue<Int>(), BlockingQueue<Int>())
    let thread = try Thread(name: "caller") {
      try? gate.call {
        begun.enqueue(1)
        _ = release.dequeue()
      }
    }
    _ = begun.dequeue()
    while !gate.isOverdue { Clock.sleep(0.001) }
    #expect(throws: Errno.skipped) { _ = try call(gate, .skipping) }
    #expect(
      LayerAccess.with(.skipping) { gate.isSkipped } && !LayerAccess.with(.lastKnown) { gate.isSkipped })
    #expect(recoveries.count == 0)
    release.enqueue(1)
    thread.join()
    #expect(recoveries.count == 1 && !gate.isOverdue && gate.unresponsiveSince == nil)
    #expect(try call(gate, .waiting) == 1)
    #expect(recoveries.count == 1)
  }

  @Test("jobs of a layer run in order, on a thread that may wait")
  func jobs() throws {
    let gate = LayerGate(layer: 0, isRemote: true)
    let seen = BlockingQueue<(Int, Bool)>()
    for number in 0..<100 { gate.run { seen.enqueue((number, LayerAccess.current == .waiting)) } }
    for number in 0..<100 {
      let (next, mayWait) = try #require(seen.dequeue())
      #expect(next == number && mayWait)
    }
  }
}
