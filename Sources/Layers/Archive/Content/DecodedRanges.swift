/// Which bytes of an entry are decoded and can be read: disjoint ranges, in the order in which they were begun. A
/// decoder extends the last.
struct DecodedRanges {
  private var earlier: [Range<UInt64>] = []
  private(set) var last: Range<UInt64> = 0..<0

  /// Up to where the last range is decoded.
  var end: UInt64 { last.upperBound }

  /// The number of bytes.
  var count: UInt64 { count(upTo: end) }

  /// The number of bytes if the last range ended at `end`.
  func count(upTo end: UInt64) -> UInt64 {
    earlier.reduce(end - min(end, last.lowerBound)) { $0 + UInt64($1.count) }
  }

  func contains(_ range: Range<UInt64>) -> Bool {
    last.contains(range) || earlier.contains { $0.contains(range) }
  }

  /// Begins another range, in which no byte is decoded yet.
  mutating func begin(at offset: UInt64) {
    if !last.isEmpty { earlier.append(last) }
    last = offset..<offset
  }

  mutating func extend(to end: UInt64) { last = last.lowerBound..<max(end, last.lowerBound) }

  mutating func removeBeginning(upTo offset: UInt64) { last = min(offset, end)..<end }

  /// Removes a range, which is decoded again, from the earlier ones.
  mutating func removeEarlier(in range: Range<UInt64>) {
    if earlier.isEmpty { return }
    earlier = earlier.flatMap { other in
      if !other.overlaps(range) { return [other] }
      let before = other.lowerBound..<max(other.lowerBound, range.lowerBound)
      let after = min(other.upperBound, range.upperBound)..<other.upperBound
      return [before, after].filter { !$0.isEmpty }
    }
  }

  /// Removes earlier ranges, the first of them first, until at most `limit` bytes are left, or only the last range.
  /// - Returns: what was removed.
  mutating func removeEarlier(toKeep limit: UInt64) -> [Range<UInt64>] {
    var (count, number) = (count, 0)
    while number < earlier.count, count > limit {
      count -= UInt64(earlier[number].count)
      number += 1
    }
    defer { earlier.removeFirst(number) }
    return Array(earlier[..<number])
  }
}
