import Containers
import Fuse
import Layers
import Posix

/// A directory's names as they were at one moment, in the order in which they are listed: that of their
/// cookies.
///
/// A name's cookie is a hash of it, the same in every snapshot. So a name that is there throughout is listed
/// exactly once, however many requests a listing takes and whatever comes and goes meanwhile; and a snapshot
/// can be let go at any time, since the next one goes on where it ended. Two names of a directory would share
/// a cookie with a probability of n² / 2⁶⁴ for n names; one of the two is missed then if a reply ends between
/// them.
struct ListingSnapshot: Sendable {
  /// An item's cookie, and its place in the listing.
  struct Position {
    let cookie: UInt64
    let place: UInt32
  }

  let listing: Listing
  /// The directory's version before the layers were read.
  let version: Int
  /// In the order of cookies.
  private let order: [Position]

  /// The cookies of `.` and `..`, and the first that a name may have.
  static let dot: UInt64 = 1
  static let dotDot: UInt64 = 2
  private static let first: UInt64 = 3

  init(_ listing: Listing, version: Int = 0) {
    self.listing = listing
    self.version = version
    var order: [Position] = []
    order.reserveCapacity(listing.items.count)
    for place in listing.items.indices {
      // Half of the hash fits a positive off_t.
      let cookie = max(listing.hash(at: place) >> 1, Self.first)
      order.append(Position(cookie: cookie, place: UInt32(place)))
    }
    order.sort { $0.cookie < $1.cookie }
    self.order = order
  }

  /// The items after a cookie, in the order in which they are listed.
  func positions(after cookie: UInt64) -> ArraySlice<Position> {
    var (low, high) = (0, order.count)
    while low < high {
      let middle = (low + high) / 2
      if order[middle].cookie > cookie { high = middle } else { low = middle + 1 }
    }
    return order[low...]
  }

  /// The item at a position.
  func item(at position: Position) -> Listing.Item { listing.items[Int(position.place)] }
}

/// The snapshots of listings that take several READDIR requests. The cache is bounded, since the kernel does not
/// report a listing that was abandoned.
final class ListingCache: Sendable {
  /// The most snapshots and the most names in all of them, about 80 bytes each. A process that lists more
  /// directories at a time has them read again for each request.
  static let limit = 64
  static let nameLimit = 1 << 20

  private let snapshots = Locked(
    LRUCache<NodeID, ListingSnapshot>(countLimit: limit, costLimit: nameLimit))

  /// The snapshot of a directory; nil if there is none or it was evicted.
  func snapshot(of directory: NodeID) -> ListingSnapshot? {
    snapshots.withLock { $0.value(for: directory) }
  }

  /// Replaces the snapshot of a directory.
  func keep(_ snapshot: ListingSnapshot, of directory: NodeID) {
    snapshots.withLock { $0.insert(snapshot, for: directory, cost: snapshot.listing.items.count) }
  }

  /// Removes the snapshot of a directory.
  func drop(_ directory: NodeID) { snapshots.withLock { _ = $0.remove(directory) } }

  /// How many snapshots there are, and how many names they have, for tests.
  var counts: (listings: Int, names: Int) { snapshots.withLock { ($0.count, $0.cost) } }
}
