/// The registered routes, in order. The first route that matches a URL wins.
public struct RouteTable: Sendable {
  /// Indexed by `RouteIndex`; nil after removal.
  private var entries: [RouteEntry?] = []
  private(set) var trie = RouteTrie()
  /// The indexes of the routes with a name. The key is UTF-8, since `String` compares canonical equivalents equal.
  private var indexes: [[UInt8]: [RouteIndex]] = [:]
  /// The number of routes.
  public private(set) var count = 0

  /// An empty table.
  public init() {}

  /// The routes, in order.
  public var routes: [Route] { entries.compactMap { $0?.route } }

  /// The route that was appended last, if it is still there.
  public var last: Route? { entries.last.flatMap(\.self)?.route }

  /// The `route` commands that recreate the table, each with a newline.
  public var text: String { routes.map { "\($0)\n" }.joined() }

  /// Appends a route.
  /// - Returns: The names of the earlier routes that overlap it, each once, in order.
  /// - Throws: EEXIST if an earlier route matches all its URLs.
  @discardableResult
  public mutating func append(_ route: Route) throws(RoutingError) -> [String] {
    let overlapping = OverlapSearch.indexes(overlapping: route.pattern, in: trie)
      .compactMap { entries[Int($0)]?.route }
      .filter { $0.pattern.overlaps(route.pattern) }
    if let earlier = overlapping.first(where: { $0.pattern.covers(route.pattern) }) {
      throw Self.shadowed(route, by: earlier)
    }
    add(route)
    var seen: Set<[UInt8]> = []
    return overlapping.map(\.name).filter { seen.insert(Array($0.utf8)).inserted }
  }

  /// Removes all routes with a name.
  /// - Returns: The number of removed routes.
  @discardableResult
  public mutating func remove(name: String) -> Int {
    guard let removed = indexes.removeValue(forKey: Array(name.utf8)) else { return 0 }
    for index in removed {
      if let entry = entries[Int(index)] { trie.remove(index, from: entry.node) }
      entries[Int(index)] = nil
    }
    count -= removed.count
    // Rebuilding only when tombstones outnumber routes keeps removal amortized.
    if entries.count > 2 * count { rebuild() }
    return removed.count
  }

  /// Removes all routes.
  public mutating func removeAll() { self = RouteTable() }

  private mutating func add(_ route: Route) {
    let index = RouteIndex(entries.count)
    entries.append(RouteEntry(route, node: trie.add(route.pattern, at: index)))
    indexes[Array(route.name.utf8), default: []].append(index)
    count += 1
  }

  private mutating func rebuild() {
    let routes = routes
    removeAll()
    for route in routes { add(route) }
  }

  private static func shadowed(_ route: Route, by earlier: Route) -> RoutingError {
    let isSame = route.pattern.covers(earlier.pattern)
    return RoutingError(
      .shadowed,
      "\(route.pattern) never matches: "
        + (isSame ? "it is the same as that of the route " : "all its URLs go to the earlier route ")
        + "\(earlier.name) (\(earlier.pattern))")
  }

  /// Matches a URL; nil if no route matches. The time depends on the URL and on the number of ways to read its
  /// components, not on the number of routes.
  /// - Throws: EINVAL if components or parameters are not UTF-8.
  public func match(_ url: RouteURL) throws(RoutingError) -> RouteMatch? {
    try url.requireUTF8()
    guard let index = RouteSearch.first(for: url, in: self), let entry = entries[Int(index)] else {
      return nil
    }
    return RouteMatch(url, entry)
  }

  func matchesQuery(of url: RouteURL, _ index: RouteIndex) -> Bool {
    guard let entry = entries[Int(index)] else { return false }
    return entry.route.pattern.parameters.isEmpty || entry.route.pattern.matchesQuery(of: url)
  }
}

extension RoutePattern {
  func matchesQuery(of url: RouteURL) -> Bool {
    for expected in parameters {
      guard let index = url.index(ofParameter: expected.name) else {
        if expected.isOptional { continue }
        return false
      }
      guard expected.type.matches(url.decoded.span.extracting(url.parameters[index].value.offsets)) else {
        return false
      }
    }
    return true
  }
}
