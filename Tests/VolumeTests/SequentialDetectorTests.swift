import Fuse
import Testing

@testable import Volume

@Suite struct SequentialDetectorTests {
  private static func directory(_ number: UInt64) -> NodeID { NodeID(rawValue: number) }

  /// A habit of someone who has read that many directories, some files of each.
  private func habit(after count: UInt64) -> SequentialDetector {
    var habit = SequentialDetector()
    for number in 0..<count {
      if !habit.begin(Self.directory(number + 2)) { habit.goOn(Self.directory(number + 2)) }
    }
    return habit
  }

  @Test("several directories in a row make a habit, one or two do not")
  func begins() {
    for count in 0..<UInt64(SequentialDetector.least) {
      var habit = habit(after: count)
      let isHabit = habit.begin(Self.directory(1))
      #expect(!isHabit, "after \(count)")
    }
    var habit = habit(after: UInt64(SequentialDetector.least))
    let isHabit = habit.begin(Self.directory(1))
    #expect(isHabit)
  }

  @Test("who begins to read one file of each directory is found out soon")
  func ends() {
    var habit = habit(after: 100)
    let guesses = (0..<100).count { habit.begin(Self.directory(200 + $0)) }
    #expect(guesses <= SequentialDetector.interval, "\(guesses) directories were read ahead in vain")
  }

  @Test("two who read by turns are no habit")
  func turns() {
    var habit = SequentialDetector()
    for number in stride(from: UInt64(2), to: 100, by: 2) {
      let isHabit = [habit.begin(Self.directory(number)), habit.begin(Self.directory(number + 1))]
      habit.goOn(Self.directory(number))
      #expect(isHabit == [false, false])
    }
  }
}
