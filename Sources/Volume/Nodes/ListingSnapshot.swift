import Layers
import Posix

/// A directory's names as they were at one time, in the order of their cookies.
///
/// A name's cookie is a hash of the name, the same in every snapshot. So a name that is there throughout is listed
/// exactly once, however many requests a listing takes and whatever else comes and goes; and a snapshot can be
/// evicted at any time, since the next one continues where it ended. The probability that two of n names share a
/// cookie is n² / 2⁶⁴; one of them is missed if a reply ends between the two.
struct ListingSnapshot: Sendable {
  struct Position {
    let cookie: UInt64
    let index: UInt32
  }

  let listing: Listing
  /// The directory's version before the layers were read.
  let version: Int
  private let order: [Position]

  /// The cookies of `.` and `..`, and the first that a name can have.
  static let dot: UInt64 = 1
  static let dotDot: UInt64 = 2
  private static let first: UInt64 = 3

  init(_ listing: Listing, version: Int = 0) {
    self.listing = listing
    self.version = version
    var order: [Position] = []
    order.reserveCapacity(listing.items.count)
    for index in listing.items.indices {
      // Shifted to fit a positive off_t.
      let cookie = max(listing.hash(at: index) >> 1, Self.first)
      order.append(Position(cookie: cookie, index: UInt32(index)))
    }
    order.sort { $0.cookie < $1.cookie }
    self.order = order
  }

  func positions(after cookie: UInt64) -> ArraySlice<Position> {
    var (low, high) = (0, order.count)
    while low < high {
      let middle = (low + high) / 2
      if order[middle].cookie > cookie { high = middle } else { low = middle + 1 }
    }
    return order[low...]
  }

  func item(at position: Position) -> Listing.Item { listing.items[Int(position.index)] }
}
