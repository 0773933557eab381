import Fuse

/// Detects that programs which read one file of a directory read the others too: then readahead in the next
/// directory begins with the first file instead of the second.
///
/// Prefetched files are not asked for, so the daemon does not see whether they were needed. Every so often a
/// directory is therefore a test: there, readahead waits for the second file, and ends if that is not read.
struct SequentialDetector {
  static let threshold = 3
  /// One of so many directories is a test.
  static let interval = 8

  private var streak = 0
  private var directories = 0
  /// The directory whose second file is waited for.
  private var tested: NodeID?

  /// Whether several directories in a row were read through.
  var isSequential: Bool { streak >= Self.threshold }

  /// Records that the first file of a directory was read; returns whether the others are likely to follow.
  mutating func begin(_ directory: NodeID) -> Bool {
    if tested != nil { streak = 0 }
    directories += 1
    let opens = isSequential && !directories.isMultiple(of: Self.interval)
    tested = opens ? nil : directory
    return opens
  }

  mutating func recordFurtherRead(_ directory: NodeID) {
    guard tested == directory else { return }
    tested = nil
    streak += 1
  }
}
