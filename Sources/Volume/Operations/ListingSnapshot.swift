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

/// The snapshots of the listings that take several requests and are under way; the latest of them, since one
/// that was given up is not told.
final class ListingCache: Sendable {
  private struct State {
    /// The least recent one first.
    var snapshots: [(directory: NodeID, snapshot: ListingSnapshot)] = []
    var names = 0
  }

  /// How many are kept, and with how many names in all: about 80 bytes each. Who reads more directories than
  /// that at a time pays for it: they are listed anew for each request.
  static let limit = 64
  static let nameLimit = 1 << 20

  private let state = Locked(State())

  /// The latest snapshot of a directory, if it is still there.
  func snapshot(of directory: NodeID) -> ListingSnapshot? {
    state.withLock { state in
      guard let place = state.snapshots.lastIndex(where: { $0.directory == directory }) else { return nil }
      let found = state.snapshots.remove(at: place)
      state.snapshots.append(found)
      return found.snapshot
    }
  }

  /// Keeps a snapshot in place of a directory's former one.
  func keep(_ snapshot: ListingSnapshot, of directory: NodeID) {
    state.withLock { state in
      Self.drop(directory, &state)
      state.snapshots.append((directory, snapshot))
      state.names += snapshot.listing.items.count
      while state.snapshots.count > Self.limit || (state.names > Self.nameLimit && state.snapshots.count > 1)
      {
        state.names -= state.snapshots.removeFirst().snapshot.listing.items.count
      }
    }
  }

  /// Lets a directory's snapshot go.
  func drop(_ directory: NodeID) { state.withLock { Self.drop(directory, &$0) } }

  private static func drop(_ directory: NodeID, _ state: inout State) {
    guard let place = state.snapshots.lastIndex(where: { $0.directory == directory }) else { return }
    state.names -= state.snapshots.remove(at: place).snapshot.listing.items.count
  }

  /// How many there are, and how many names they have, for tests.
  var counts: (listings: Int, names: Int) { state.withLock { ($0.snapshots.count, $0.names) } }
}
