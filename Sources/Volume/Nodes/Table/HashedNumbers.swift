/// Numbers of 32 bits, from 2³¹ on, for keys of 64 bits: a hash of the key, or another free number where that one is
/// taken.
///
/// Invariants: no two keys of `owners` have one number; a number that is not the hash of its key is in `displaced`, and
/// is never dropped, so that its key keeps it whether the first owner of the hash is known or not.
struct HashedNumbers {
  private struct Owner {
    let key: UInt64
    /// The period in which it was asked for last.
    var lastUse: UInt32
  }

  private static let first: UInt64 = 1 << 31

  private var owners: [UInt64: Owner] = [:]
  private var displaced: [UInt64: UInt64] = [:]
  /// How often numbers were dropped.
  private var period: UInt32 = 0
  private var limit: Int
  private let smallestLimit: Int

  init(limit: Int) {
    self.limit = limit
    smallestLimit = limit
  }

  var count: Int { owners.count }
  var displacedCount: Int { displaced.count }

  var isCrowded: Bool { owners.count > limit }

  /// - Returns: the number, and whether it is another than the hash, assigned by this call.
  mutating func number(for key: UInt64) -> (number: UInt64, isNewlyDisplaced: Bool) {
    if let number = displaced[key] { return (number, false) }
    var number = Self.number(of: key)
    // Odd, so that all numbers are tried.
    let step = key >> 31 | 1
    var isDisplaced = false
    while let owner = owners[number] {
      if owner.key == key {
        if owner.lastUse != period { owners[number]?.lastUse = period }
        return (number, false)
      }
      number = Self.number(of: number &+ step)
      isDisplaced = true
    }
    owners[number] = Owner(key: key, lastUse: period)
    if isDisplaced { displaced[key] = number }
    return (number, isDisplaced)
  }

  /// Takes over the number that a predecessor has assigned.
  mutating func restore(_ key: UInt64, _ number: UInt64) {
    if let owner = owners[number], owner.key != key { return }
    owners[number] = Owner(key: key, lastUse: period)
    if number != Self.number(of: key) { displaced[key] = number }
  }

  /// Drops the numbers that were not asked for since the last time; one of these may be that of a node that is just
  /// being added.
  /// - Parameter live: numbers to keep.
  mutating func drop(except live: Set<UInt64>) {
    owners = owners.filter { number, owner in
      owner.lastUse == period || live.contains(number) || displaced[owner.key] != nil
    }
    period &+= 1
    // As many numbers as there are nodes come before the next time, so that the cost of each is constant.
    limit = owners.count + max(smallestLimit, live.count)
  }

  private static func number(of key: UInt64) -> UInt64 { key & (first - 1) | first }
}
