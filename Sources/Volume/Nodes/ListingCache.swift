import Containers
import Fuse
import Layers
import Posix

/// The snapshots of listings that take several READDIR requests. The cache is bounded, since the kernel does not
/// report a listing that was abandoned.
final class ListingCache: Sendable {
  /// The most snapshots and the most names in all of them, about 80 bytes each.
  static let limit = 64
  static let nameLimit = 1 << 20

  private let snapshots = Locked(
    LRUCache<NodeID, ListingSnapshot>(countLimit: limit, costLimit: nameLimit))

  func snapshot(of directory: NodeID) -> ListingSnapshot? {
    snapshots.withLock { $0.value(for: directory) }
  }

  func keep(_ snapshot: ListingSnapshot, of directory: NodeID) {
    snapshots.withLock { $0.insert(snapshot, for: directory, cost: snapshot.listing.items.count) }
  }

  func drop(_ directory: NodeID) { snapshots.withLock { _ = $0.remove(directory) } }

  /// How many snapshots there are, and how many names they have, for tests.
  var counts: (listings: Int, names: Int) { snapshots.withLock { ($0.count, $0.cost) } }
}
