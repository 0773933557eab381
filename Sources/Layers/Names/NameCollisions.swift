import Posix

/// How many names several entries of one directory have, as far as a layer's directories have been read.
public final class NameCollisions: Sendable {
  private static let capacity = 4096

  /// Only directories with any.
  private let counts = Locked<[FileIdentity: Int]>([:])

  /// The names with several entries.
  public var count: Int { counts.withLock { $0.values.reduce(0, +) } }

  func record(_ count: Int, in directory: FileIdentity) {
    counts.withLock { counts in
      if count == 0 {
        if !counts.isEmpty { counts[directory] = nil }
      } else if counts[directory] != nil || counts.count < Self.capacity {
        counts[directory] = count
      }
    }
  }
}
