import Testing

@testable import Fuse

/// A clock that advances by a microsecond each time it is read, and requests that arrive at given times.
private final class Simulation {
  var time: UInt64 = 0
  var polls = 0

  func spin(processors: Int = 2) -> AdaptiveSpin {
    AdaptiveSpin(processors: processors) { [self] in
      time += 1000
      return time
    }
  }

  /// Simulates one request.
  /// - Parameter delay: microseconds from the beginning of the wait to the request.
  /// - Returns: the number of polls before the worker blocks.
  func request(after delay: UInt64, _ spin: inout AdaptiveSpin) -> Int {
    let start = time
    polls = 0
    spin.wait {
      polls += 1
      return time >= start + delay * 1000
    }
    time = max(time, start + delay * 1000)
    spin.received()
    return polls
  }
}

@Suite struct AdaptiveSpinTests {
  @Test("it spins while requests arrive soon, and not while they arrive late")
  func adapts() {
    let simulation = Simulation()
    var spin = simulation.spin()
    let early = (0..<10).map { _ in simulation.request(after: 20, &spin) }
    #expect(early[0] == 0 && early[1...].allSatisfy { $0 > 0 })
    let late = (0..<10).map { _ in simulation.request(after: 5000, &spin) }
    #expect(late[0] > 0 && late[1...].allSatisfy { $0 == 0 })
  }

  @Test("it rarely spins while most requests arrive late, and recovers once they arrive soon")
  func failures() {
    let simulation = Simulation()
    var spin = simulation.spin()
    var spun = 0
    for round in 0..<4000 where simulation.request(after: round % 4 == 3 ? 20 : 5000, &spin) > 50 {
      spun += 1
    }
    #expect(spun < 10, "\(spun) failures")
    let after = (0..<2000).map { _ in simulation.request(after: 20, &spin) }
    #expect(after.suffix(500).allSatisfy { $0 > 0 }, "it spins again")
  }

  /// Simulates a request of a program that runs only while the worker does not.
  private func sharedRequest(_ simulation: Simulation, _ spin: inout AdaptiveSpin) -> Int {
    var polls = 0
    spin.wait {
      polls += 1
      return false
    }
    simulation.time += 5000
    spin.received()
    return polls
  }

  @Test("it hardly spins while it shares the program's processor, and recovers once a request arrives late")
  func sharedProcessor() {
    let simulation = Simulation()
    var spin = simulation.spin()
    let failures = (0..<4000).count { _ in sharedRequest(simulation, &spin) > 0 }
    #expect((1..<20).contains(failures), "\(failures) spins")
    _ = simulation.request(after: 5000, &spin)
    let after = (0..<20).map { _ in simulation.request(after: 20, &spin) }
    #expect(after.suffix(5).allSatisfy { $0 > 0 }, "it spins again")
  }

  @Test("it does not spin with one processor")
  func single() {
    let simulation = Simulation()
    var spin = simulation.spin(processors: 1)
    for _ in 0..<20 {
      let polls = simulation.request(after: 1, &spin)
      #expect(polls == 0)
    }
  }

  @Test("the streak counts requests in a row within the limit, with or without a spin")
  func streak() {
    let simulation = Simulation()
    var spin = simulation.spin()
    for count in 1...20 {
      _ = simulation.request(after: 20, &spin)
      #expect(spin.streak == count)
    }
    _ = simulation.request(after: 5000, &spin)
    #expect(spin.streak == 0)
    _ = simulation.request(after: 20, &spin)
    #expect(spin.streak == 1)
  }
}
