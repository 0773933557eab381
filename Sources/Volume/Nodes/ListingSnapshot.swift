import Layers
import Posix

/// A directory's names as they were at one time, in the order of `ListingCookies`.
///
/// That order is the same in every snapshot. So a name that is there throughout is listed exactly once, however many
/// requests a listing takes and whatever else comes and goes; and a snapshot can be evicted at any time, since the next
/// one continues where it ended.
struct ListingSnapshot: Sendable {
  struct Position {
    let hash: UInt32
    /// The offset at which the listing continues after this name.
    var cookie: UInt32
    let index: UInt32
  }

  let listing: Listing
  /// The directory's version before the layers were read.
  let version: Int
  let order: [Position]

  init(_ listing: Listing, _ cookies: ListingCookies, version: Int = 0) {
    self.listing = listing
    self.version = version
    var order: [Position] = []
    order.reserveCapacity(listing.items.count)
    for (index, item) in listing.items.enumerated() {
      let hash = UInt32(listing.withName(of: item) { cookies.hash(of: $0) })
      order.append(Position(hash: hash, cookie: hash, index: UInt32(index)))
    }
    order.sort { $0.hash < $1.hash }
    Self.orderCollisions(in: &order, listing, cookies)
    self.order = order
  }

  /// Orders names of equal hashes, and gives all but the last of them cookies of their own.
  private static func orderCollisions(
    in order: inout [Position], _ listing: Listing, _ cookies: ListingCookies
  ) {
    var start = 0
    while start < order.count {
      var end = start + 1
      while end < order.count, order[end].hash == order[start].hash { end += 1 }
      if end - start > 1 {
        let named = order[start..<end].map { ($0, listing.name(of: listing.items[Int($0.index)])) }
        for (offset, (position, name)) in named.sorted(by: { $0.1.lexicographicallyPrecedes($1.1) })
          .enumerated()
        {
          order[start + offset] = position
          if start + offset < end - 1 {
            order[start + offset].cookie = UInt32(cookies.assignedCookie(of: name))
          }
        }
      }
      start = end
    }
  }

  /// The names that follow a cookie.
  /// - Throws: EINVAL for an unknown cookie.
  func positions(after cookie: UInt64, _ cookies: ListingCookies) throws(Errno) -> ArraySlice<Position> {
    if cookie < ListingCookies.firstAssigned { return order[index { $0.hash > cookie }...] }
    let last = try cookies.name(of: cookie)
    let hash = try withCName(last) { name throws(Errno) in cookies.hash(of: name) }
    return order[
      index { position in
        position.hash > hash
          || (position.hash == hash && last.lexicographicallyPrecedes(listing.name(of: item(at: position))))
      }...]
  }

  /// The index of the first name that follows.
  private func index(where follows: (Position) -> Bool) -> Int {
    var (low, high) = (0, order.count)
    while low < high {
      let middle = (low + high) / 2
      if follows(order[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }

  func item(at position: Position) -> Listing.Item { listing.items[Int(position.index)] }
}
