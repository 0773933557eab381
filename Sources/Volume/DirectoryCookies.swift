import Glibc
import Layers
import Posix

/// A directory's names in the order in which they are listed, for as long as the kernel knows the directory.
///
/// A name gets its cookie when it is first seen, and listings go in the order of cookies: so a name that is
/// there throughout is listed exactly once, however many requests a listing takes and whatever comes and goes
/// meanwhile. One that goes and comes again gets its cookie back, so that no listing has it twice.
final class DirectoryCookies: Sendable {
  /// A listing as it was at one moment.
  struct Snapshot {
    var listing = Listing()
    /// The items' places, in the order of their cookies.
    fileprivate(set) var order: [UInt32] = []
    /// The items' cookies, by place.
    fileprivate(set) var cookies: [UInt64] = []

    /// The position in `order` of the first item after a cookie.
    func position(after cookie: UInt64) -> Int {
      var (low, high) = (0, order.count)
      while low < high {
        let middle = (low + high) / 2
        if cookies[Int(order[middle])] > cookie { high = middle } else { low = middle + 1 }
      }
      return low
    }
  }

  private struct State {
    var snapshot: Snapshot?
    /// Names that are gone, with their cookies, for the day they come again.
    var gone = Snapshot()
    var nextCookie = DirectoryCookies.first
  }

  /// How many names that are gone are remembered; the ones that went longest ago are dropped.
  static let remembered = 4096

  /// The cookies of `.` and `..`, and the first of a name.
  static let dot: UInt64 = 1
  static let dotDot: UInt64 = 2
  private static let first: UInt64 = 3

  private let state = Locked(State())

  /// The latest snapshot, if there is one.
  var snapshot: Snapshot? { state.withLock { $0.snapshot } }

  /// Takes a new listing over.
  func refresh(_ listing: Listing) -> Snapshot {
    state.withLock { state in
      let former = state.snapshot ?? Snapshot()
      var snapshot = Snapshot(listing: listing)
      snapshot.cookies.reserveCapacity(listing.items.count)
      for item in listing.items {
        let known = former.cookie(of: item, in: listing) ?? state.gone.cookie(of: item, in: listing)
        snapshot.cookies.append(known ?? state.nextCookie)
        if known == nil { state.nextCookie += 1 }
      }
      snapshot.order = Array(0..<UInt32(listing.items.count))
      let cookies = snapshot.cookies
      snapshot.order.sort { cookies[Int($0)] < cookies[Int($1)] }
      state.gone = Self.gone(from: state.gone, former, now: listing)
      state.snapshot = snapshot
      return snapshot
    }
  }

  /// The names that were there, now or before, and are not in a listing; the latest to go come first.
  private static func gone(from older: Snapshot, _ former: Snapshot, now listing: Listing) -> Snapshot {
    var gone = Snapshot()
    for snapshot in [former, older] {
      for (place, item) in snapshot.listing.items.enumerated() where gone.cookies.count < remembered {
        if listing.place(of: item, in: snapshot.listing) != nil { continue }
        if gone.listing.add(item, of: snapshot.listing) { gone.cookies.append(snapshot.cookies[place]) }
      }
    }
    return gone
  }
}

extension DirectoryCookies.Snapshot {
  fileprivate func cookie(of item: Listing.Item, in other: Listing) -> UInt64? {
    listing.place(of: item, in: other).map { cookies[$0] }
  }
}
