import Posix

/// How many names several entries of one directory have, as far as a layer's directories have been read.
public final class NameCollisions: Sendable {
  private static let capacity = 4096

  private struct Subject: Hashable {
    let directory: FileIdentity
    /// Whether it is about names that the directory and its twins have.
    let isAmongTwins: Bool
  }

  /// Only directories with any.
  private let counts = Locked<[Subject: Int]>([:])

  /// The names with several entries.
  public var count: Int { counts.withLock { $0.values.reduce(0, +) } }

  func record(_ count: Int, in directory: FileIdentity) {
    record(count, Subject(directory: directory, isAmongTwins: false))
  }

  /// - Parameter directory: the first one of them.
  func record(_ count: Int, amongTwinsOf directory: FileIdentity) {
    record(count, Subject(directory: directory, isAmongTwins: true))
  }

  private func record(_ count: Int, _ subject: Subject) {
    counts.withLock { counts in
      if count == 0 {
        if !counts.isEmpty { counts[subject] = nil }
      } else if counts[subject] != nil || counts.count < Self.capacity {
        counts[subject] = count
      }
    }
  }
}
