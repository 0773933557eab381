import Fuse

/// Whether those who read one file of a directory have lately read others of it, too: then reading ahead begins
/// with the first file of the next directory, and not with the second.
///
/// What is read ahead is not asked for, so that nobody tells whether it was needed. Every so often a directory is
/// therefore a test: there, reading ahead waits for the second file as ever, and where that does not come, the
/// habit is over.
struct SequentialDetector {
  /// How many directories in a row make a habit.
  static let least = 3
  /// Every so many directories one is a test.
  static let interval = 8

  private var row = 0
  private var directories = 0
  /// The directory of which the second file is waited for.
  private var tested: NodeID?

  /// Notes that the first file of a directory was asked for.
  /// - Returns: whether the others are likely to follow.
  mutating func begin(_ directory: NodeID) -> Bool {
    if tested != nil { row = 0 }
    directories += 1
    let isHabit = row >= Self.least && !directories.isMultiple(of: Self.interval)
    tested = isHabit ? nil : directory
    return isHabit
  }

  /// Notes that another file of a directory was asked for.
  mutating func goOn(_ directory: NodeID) {
    guard tested == directory else { return }
    tested = nil
    row += 1
  }
}
