/// A route in a table: its place among the others, and its entry.
struct RouteIndex: Comparable, Sendable {
  /// Earlier routes have smaller ones. There are gaps, so that a route can be inserted without renumbering.
  let order: UInt64
  /// The index of its entry.
  let slot: UInt32

  static func == (left: RouteIndex, right: RouteIndex) -> Bool { left.order == right.order }
  static func < (left: RouteIndex, right: RouteIndex) -> Bool { left.order < right.order }
}

extension RandomAccessCollection<RouteIndex> where Index == Int {
  /// The position of the first index that is not less than another, found from the end: most are added there.
  func position(of index: RouteIndex) -> Int {
    if last.map({ $0 < index }) ?? true { return count }
    var range = startIndex..<endIndex
    while !range.isEmpty {
      let middle = range.lowerBound + range.count / 2
      range = self[middle] < index ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return range.lowerBound
  }
}

extension RangeReplaceableCollection<RouteIndex> where Self: RandomAccessCollection, Index == Int {
  /// Inserts an index into an ascending array.
  mutating func insertInOrder(_ index: RouteIndex) {
    let position = position(of: index)
    if position == count { append(index) } else { insert(index, at: position) }
  }

  /// Removes an index from an ascending array, if it is there.
  mutating func remove(_ index: RouteIndex) {
    let position = position(of: index)
    if position < count, self[position] == index { remove(at: position) }
  }
}

/// Chooses the orders of routes.
///
/// Routes that are inserted in a row stand side by side, so each gets an order close to the one before it, and leaves
/// the rest of the gap to those that follow.
struct RouteOrder: Sendable {
  /// Between appended routes.
  private static let appendGap: UInt64 = 1 << 32
  /// Between routes that are inserted in a row.
  private static let insertGap: UInt64 = 1 << 16

  /// The order of the route that was inserted last; nil if one was appended since.
  private var last: UInt64?

  /// After the last route.
  mutating func after(_ previous: UInt64) -> UInt64 {
    last = nil
    return previous + Self.appendGap
  }

  /// Between two routes; nil if there is no gap.
  /// - Parameter previous: 0 for the first place.
  mutating func between(_ previous: UInt64, _ next: UInt64) -> UInt64? {
    let half = (next - previous) / 2
    if half == 0 { return nil }
    let order =
      switch last {
      case previous: previous + min(half, Self.insertGap)
      case next: next - min(half, Self.insertGap)
      default: previous + half
      }
    last = order
    return order
  }
}
