import Containers

/// The routes of a table by their names.
///
/// Names are compared as UTF-8, since `String` compares canonical equivalents equal.
struct RouteNames: Sendable {
  private struct Group: Sendable {
    let name: String
    /// In order. Few names have more than one.
    var routes: ShortArray<RouteIndex>
  }

  /// From 1 on; nil after removal.
  private var groups: [Group?] = [nil]
  private var index = HashIndex()

  /// Adds a route.
  mutating func add(_ route: RouteIndex, _ name: String) {
    let hash = Self.hash(name)
    let found = find(name, hash)
    if found != 0 { return groups[Int(found)]?.routes.insertInOrder(route) ?? () }
    groups.append(Group(name: name, routes: ShortArray([route])))
    index.insert(UInt32(groups.count - 1), hash)
  }

  /// The first route with a name.
  func first(_ name: String) -> RouteIndex? { groups[Int(find(name, Self.hash(name)))]?.routes.first }

  /// Removes the routes with a name.
  /// - Returns: the routes, in order.
  mutating func remove(_ name: String) -> ShortArray<RouteIndex> {
    let found = find(name, Self.hash(name))
    guard let group = groups[Int(found)] else { return ShortArray() }
    index.remove(found)
    groups[Int(found)] = nil
    return group.routes
  }

  /// 0 if there is none.
  private func find(_ name: String, _ hash: UInt32) -> UInt32 {
    index.first(hash) { slot in groups[Int(slot)]?.name.utf8.elementsEqual(name.utf8) == true }
  }

  private static func hash(_ name: String) -> UInt32 {
    var (name, hasher) = (name, Hasher())
    name.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    return UInt32(truncatingIfNeeded: hasher.finalize())
  }
}
