/// The registered routes, in order. The first that takes a URL wins.
public struct RouteTable: Sendable {
  /// By place; nil where a route was removed.
  private var entries: [Entry?] = []
  private(set) var trie = RouteTrie()
  /// The places of the routes of a name, whose bytes are the key: strings are equal that are spelt differently.
  private var places: [[UInt8]: [RouteIndex]] = [:]
  /// How many routes there are.
  public private(set) var count = 0

  /// A table without routes.
  public init() {}

  /// The routes, in order.
  public var routes: [Route] { entries.compactMap { $0?.route } }

  /// A line for each route, in order, each ending with a newline: read as commands they make the same table.
  public var text: String { routes.map { "\($0)\n" }.joined() }

  // MARK: Changes

  /// Registers a route after all others.
  /// - Returns: the names of earlier routes that take some of its URLs, too, each once, in order.
  /// - Throws: EEXIST where an earlier route takes all its URLs, so that it could never match.
  @discardableResult
  public mutating func append(_ route: Route) throws(RoutingError) -> [String] {
    let overlapping = OverlapSearch.places(overlapping: route.pattern, in: trie)
      .compactMap { entries[Int($0)]?.route }
      .filter { $0.pattern.overlaps(route.pattern) }
    if let earlier = overlapping.first(where: { $0.pattern.covers(route.pattern) }) {
      throw Self.hidden(route, by: earlier)
    }
    add(route)
    var seen: Set<[UInt8]> = []
    return overlapping.map(\.name).filter { seen.insert(Array($0.utf8)).inserted }
  }

  /// Removes all routes of a name.
  /// - Returns: how many there were.
  @discardableResult
  public mutating func remove(name: String) -> Int {
    guard let removed = places.removeValue(forKey: Array(name.utf8)) else { return 0 }
    for place in removed {
      if let entry = entries[Int(place)] { trie.remove(place, from: entry.node) }
      entries[Int(place)] = nil
    }
    count -= removed.count
    // Now and then, so that what removed routes leave never outgrows what there is.
    if entries.count > 2 * count { rebuild() }
    return removed.count
  }

  /// Removes all routes.
  public mutating func removeAll() { self = RouteTable() }

  private mutating func add(_ route: Route) {
    let place = RouteIndex(entries.count)
    entries.append(Entry(route, node: trie.add(route.pattern, at: place)))
    places[Array(route.name.utf8), default: []].append(place)
    count += 1
  }

  private mutating func rebuild() {
    let routes = routes
    removeAll()
    for route in routes { add(route) }
  }

  private static func hidden(_ route: Route, by earlier: Route) -> RoutingError {
    let isSame = route.pattern.covers(earlier.pattern)
    return RoutingError(
      .shadowed,
      "\(route.pattern) never matches: "
        + (isSame ? "it is the same as that of the route " : "all its URLs go to the earlier route ")
        + "\(earlier.name) (\(earlier.pattern))")
  }

  // MARK: Matching

  /// What a URL becomes; nil if no route takes it. How long it takes depends on the URL and on how many ways
  /// there are to read it, and not on the number of routes.
  /// - Throws: EINVAL where the URL's components or parameters are not UTF-8.
  public func match(_ url: RouteURL) throws(RoutingError) -> RouteMatch? {
    try url.requireUTF8()
    guard let place = RouteSearch.first(for: url, in: self), let entry = entries[Int(place)] else {
      return nil
    }
    return RouteMatch(url, entry)
  }

  /// Whether a URL that a route's scheme and components take has the parameters that it wants.
  func takesQuery(of url: RouteURL, _ place: RouteIndex) -> Bool {
    guard let entry = entries[Int(place)] else { return false }
    return entry.route.pattern.parameters.isEmpty || entry.route.pattern.takesQuery(of: url)
  }
}

extension RoutePattern {
  /// Whether the URL has the parameters that the pattern wants.
  func takesQuery(of url: RouteURL) -> Bool {
    for wanted in parameters {
      guard let place = url.place(ofParameter: wanted.name) else {
        if wanted.isOptional { continue }
        return false
      }
      guard wanted.type.fits(url.decoded.span.extracting(url.parameters[place].value.range)) else {
        return false
      }
    }
    return true
  }
}
