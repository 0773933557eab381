import Testing

@testable import Fuse

/// A clock that goes on by a microsecond with each look at it, and requests that come when they are told to.
private final class Course {
  var time: UInt64 = 0
  var looks = 0

  func spin(processors: Int = 2) -> AdaptiveSpin {
    AdaptiveSpin(processors: processors) { [self] in
      time += 1000
      return time
    }
  }

  /// One request that comes so many microseconds after it is waited for.
  /// - Returns: how often it was looked for before it was waited for asleep.
  func request(after delay: UInt64, _ spin: inout AdaptiveSpin) -> Int {
    let start = time
    looks = 0
    spin.wait {
      looks += 1
      return time >= start + delay * 1000
    }
    time = max(time, start + delay * 1000)
    spin.received()
    return looks
  }
}

@Suite struct AdaptiveSpinTests {
  @Test("requests that come soon are looked out for, those that come late are not")
  func adapts() {
    let course = Course()
    var spin = course.spin()
    let early = (0..<10).map { _ in course.request(after: 20, &spin) }
    #expect(early[0] == 0 && early[1...].allSatisfy { $0 > 0 })
    let late = (0..<10).map { _ in course.request(after: 5000, &spin) }
    #expect(late[0] > 0 && late[1...].allSatisfy { $0 == 0 })
  }

  @Test("where most come late, it is hardly ever tried, and again once they come soon")
  func failures() {
    let course = Course()
    var spin = course.spin()
    var spun = 0
    for round in 0..<4000 where course.request(after: round % 4 == 3 ? 20 : 5000, &spin) > 50 { spun += 1 }
    #expect(spun < 10, "\(spun) failures")
    let after = (0..<2000).map { _ in course.request(after: 20, &spin) }
    #expect(after.suffix(500).allSatisfy { $0 > 0 }, "it is tried again")
  }

  @Test("with one processor never")
  func single() {
    let course = Course()
    var spin = course.spin(processors: 1)
    for _ in 0..<20 {
      let looks = course.request(after: 1, &spin)
      #expect(looks == 0)
    }
  }

  @Test("a streak is what came soon, one after the other, however it was waited for")
  func streak() {
    let course = Course()
    var spin = course.spin()
    for count in 1...20 {
      _ = course.request(after: 20, &spin)
      #expect(spin.streak == count)
    }
    _ = course.request(after: 5000, &spin)
    #expect(spin.streak == 0)
    _ = course.request(after: 20, &spin)
    #expect(spin.streak == 1)
  }
}
