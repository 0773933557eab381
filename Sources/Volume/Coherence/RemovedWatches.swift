import Posix

/// The watches removed last. A thread that has added a watch without a lock learns from it whether another thread
/// has removed the same watch meanwhile: an inode has one watch, and descriptors are not reused.
struct RemovedWatches {
  static let capacity = 4096

  /// A ring buffer; the watch removed as the n-th is at index n % capacity.
  private var watches: [WatchDescriptor] = []
  /// How many have been removed so far.
  private(set) var count = 0

  mutating func append(_ watch: WatchDescriptor) {
    if watches.count < Self.capacity { watches.append(watch) } else { watches[count % Self.capacity] = watch }
    count += 1
  }

  /// Whether a watch was removed since there were `earlier` ones; also true if that is no longer known.
  func contains(_ watch: WatchDescriptor, since earlier: Int) -> Bool {
    if count - earlier > Self.capacity { return true }
    return (earlier..<count).contains { watches[$0 % Self.capacity] == watch }
  }
}
