import Fuse
import Testing

@testable import Volume

@Suite struct SequentialDetectorTests {
  private static func directory(_ number: UInt64) -> NodeID { NodeID(rawValue: number) }

  /// A detector after sequential reads of several files in each of that many directories.
  private func detector(after count: UInt64) -> SequentialDetector {
    var detector = SequentialDetector()
    for number in 0..<count {
      if !detector.begin(Self.directory(number + 2)) {
        detector.recordFurtherRead(Self.directory(number + 2))
      }
    }
    return detector
  }

  @Test("several directories in a row are sequential access, one or two are not")
  func detection() {
    for count in 0..<UInt64(SequentialDetector.threshold) {
      var detector = detector(after: count)
      let isSequential = detector.begin(Self.directory(1))
      #expect(!isSequential, "after \(count)")
    }
    var detector = detector(after: UInt64(SequentialDetector.threshold))
    let isSequential = detector.begin(Self.directory(1))
    #expect(isSequential)
  }

  @Test("reads of a single file in each directory end the detection soon")
  func end() {
    var detector = detector(after: 100)
    let guesses = (0..<100).count { detector.begin(Self.directory(200 + $0)) }
    #expect(guesses <= SequentialDetector.interval, "\(guesses) directories were read ahead needlessly")
  }

  @Test("reads that alternate between two directories are not sequential access")
  func alternation() {
    var detector = SequentialDetector()
    for number in stride(from: UInt64(2), to: 100, by: 2) {
      let isSequential = [detector.begin(Self.directory(number)), detector.begin(Self.directory(number + 1))]
      detector.recordFurtherRead(Self.directory(number))
      #expect(isSequential == [false, false])
    }
  }
}
