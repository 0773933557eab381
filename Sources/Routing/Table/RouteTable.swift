import Containers

/// The registered routes, in order. The first route that matches a URL wins.
public struct RouteTable: Sendable {
  /// Indexed by `RouteIndex.slot`; nil after removal.
  private var entries: [Route?] = []
  /// The nodes of the trie that have the route of a slot.
  private var ends: [ShortArray<RouteTrie.NodeNumber>] = []
  /// Of all entries, in order.
  private var sequence: [RouteIndex] = []
  private var order = RouteOrder()
  private(set) var trie = RouteTrie()
  /// nil until a route is inserted before another.
  private var requirements: RequirementIndex?
  /// nil until a name is searched for.
  private var names: RouteNames?
  /// The number of routes.
  public private(set) var count = 0

  /// Changes with every change of the routes.
  public private(set) var version = 0
  /// The bytes of ``text``.
  public private(set) var textSize = 0
  /// Schemes whose URLs never come to the table.
  private let builtInSchemes: Set<String>

  /// An empty table.
  /// - Parameter builtInSchemes: in lower case; a route that is limited to one of them is refused.
  public init(builtInSchemes: Set<String> = []) { self.builtInSchemes = builtInSchemes }

  /// The routes, in order.
  public var routes: [Route] { sequence.compactMap { self[$0] } }

  /// The `route` commands that recreate the table, each with a newline.
  public var text: String { String(decoding: textBytes, as: UTF8.self) }

  /// The UTF-8 of ``text``.
  public var textBytes: [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(textSize)
    for index in sequence {
      guard let route = self[index] else { continue }
      route.append(to: &text)
      text.append(UInt8(ascii: "\n"))
    }
    return text
  }

  /// Appends a route.
  /// - Throws: EEXIST if an earlier route, or what is built in, takes all its URLs.
  public mutating func append(_ route: Route) throws(RoutingError) {
    try requireUse(of: route)
    try requireNotCovered(route)
    add(route)
  }

  /// Appends a route, as ``append(_:)``.
  /// - Returns: the earlier routes that it overlaps.
  public mutating func appendFindingOverlaps(_ route: Route) throws(RoutingError) -> RouteOverlaps {
    try requireUse(of: route)
    let overlaps = overlaps(of: route.pattern)
    // One that took all its URLs would overlap it.
    if !overlaps.isEmpty { try requireNotCovered(route) }
    add(route)
    return overlaps
  }

  private func requireNotCovered(_ route: Route) throws(RoutingError) {
    if let index = covering(route.pattern), let earlier = self[index] {
      throw Self.shadowed(route, by: earlier)
    }
  }

  private subscript(index: RouteIndex) -> Route? { entries[Int(index.slot)] }

  /// Inserts a route before the first one with a name.
  /// - Throws: ENOENT if there is none; EEXIST if an earlier route, or what is built in, takes all URLs of the new one,
  ///   or the new one those of a later route.
  public mutating func insert(_ route: Route, before name: String) throws(RoutingError) {
    try requireUse(of: route)
    guard let place = first(named: name) else {
      throw RoutingError(.noRoute, "no route is named \(name)")
    }
    if let index = covering(route.pattern), index < place, let earlier = self[index] {
      throw Self.shadowed(route, by: earlier)
    }
    indexRequirements()
    if let later = firstCovered(by: route.pattern, from: place) { throw Self.shadowed(later, by: route) }
    if !add(route, before: place) {
      replace(by: routes)
      guard let place = first(named: name) else { return }
      _ = add(route, before: place)
    }
  }

  private mutating func first(named name: String) -> RouteIndex? {
    indexNames()
    return names?.first(name)
  }

  private mutating func indexNames() {
    if names != nil { return }
    var names = RouteNames()
    for index in sequence {
      if let route = self[index] { names.add(index, route.name) }
    }
    self.names = names
  }

  /// The first route from a place on all of whose URLs a pattern takes.
  private func firstCovered(by pattern: RoutePattern, from place: RouteIndex) -> Route? {
    let candidates = requirements?.candidates(coveredBy: pattern) ?? candidates(overlapping: pattern)
    for index in candidates[candidates.position(of: place)...] {
      if let route = self[index], pattern.covers(route.pattern) { return route }
    }
    return nil
  }

  /// All routes if a search does not tell those that a pattern overlaps.
  private func candidates(overlapping pattern: RoutePattern) -> [RouteIndex] {
    let (found, isIncomplete) = OverlapSearch.indexes(overlapping: pattern, in: trie)
    return isIncomplete ? sequence : found
  }

  private mutating func indexRequirements() {
    if requirements != nil { return }
    var requirements = RequirementIndex()
    for index in sequence {
      if let route = self[index] { requirements.add(route.pattern, at: index) }
    }
    self.requirements = requirements
  }

  /// The routes that a pattern overlaps.
  public func overlaps(of pattern: RoutePattern) -> RouteOverlaps {
    let (indexes, isIncomplete) = OverlapSearch.indexes(overlapping: pattern, in: trie)
    if indexes.isEmpty, !isIncomplete { return .none }
    var names: [String] = []
    var count = 0
    for index in indexes {
      // Without parameters, what the search finds overlaps.
      if !pattern.parameters.isEmpty, self[index].map({ Self.overlaps(pattern, $0) }) != true { continue }
      count += 1
      // Some may have one name.
      if names.count < 8 * RouteOverlaps.maxNames, let route = self[index] { names.append(route.name) }
    }
    return RouteOverlaps(names, count: count, isIncomplete: isIncomplete)
  }

  private static func overlaps(_ pattern: RoutePattern, _ route: Route) -> Bool {
    route.pattern.parameters.isEmpty || pattern.overlaps(route.pattern)
  }

  /// The index of the first route that takes all URLs of a pattern.
  private func covering(_ pattern: RoutePattern) -> RouteIndex? {
    CoverSearch.first(covering: pattern, in: trie) { [entries] index in
      entries[Int(index.slot)]?.pattern.covers(pattern) ?? false
    }
  }

  private func requireUse(of route: Route) throws(RoutingError) {
    guard let scheme = route.pattern.scheme, builtInSchemes.contains(scheme) else { return }
    throw RoutingError(.shadowed, "\(route.pattern) never matches: the URLs of \(scheme): are built in")
  }

  /// Removes all routes with a name.
  /// - Returns: The number of removed routes.
  @discardableResult
  public mutating func remove(name: String) -> Int {
    indexNames()
    guard let removed = names?.remove(name), !removed.isEmpty else { return 0 }
    for index in removed {
      guard let route = self[index] else { continue }
      for node in ends[Int(index.slot)] { trie.remove(index, from: node) }
      requirements?.remove(route.pattern, at: index)
      textSize -= route.lineSize
      entries[Int(index.slot)] = nil
    }
    count -= removed.count
    version += 1
    // Rebuilding only when tombstones outnumber routes keeps removal amortized.
    if entries.count > 2 * count { replace(by: routes) }
    return removed.count
  }

  /// Removes all routes.
  public mutating func removeAll() {
    let former = version
    self = RouteTable(builtInSchemes: builtInSchemes)
    version = former + 1
  }

  private mutating func add(_ route: Route) { add(route, at: order.after(sequence.last?.order ?? 0)) }

  /// - Returns: false if there is no gap left for it.
  private mutating func add(_ route: Route, before place: RouteIndex) -> Bool {
    let position = sequence.position(of: place)
    let previous = position == 0 ? 0 : sequence[position - 1].order
    guard let order = order.between(previous, place.order) else { return false }
    add(route, at: order)
    return true
  }

  private mutating func add(_ route: Route, at order: UInt64) {
    let index = RouteIndex(order: order, slot: UInt32(entries.count))
    entries.append(route)
    ends.append(trie.add(route.pattern, at: index))
    sequence.insertInOrder(index)
    requirements?.add(route.pattern, at: index)
    names?.add(index, route.name)
    count += 1
    version += 1
    textSize += route.lineSize
  }

  private mutating func replace(by routes: [Route]) {
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
  /// components, not on the number of routes, unless optional parameters of many routes do not match.
  /// - Throws: EINVAL if components or parameters are not UTF-8.
  public func match(_ url: RouteURL) throws(RoutingError) -> RouteMatch? { try find(url)?.match(url) }

  /// Finds the route that matches a URL, as ``match(_:)``, without binding values.
  public func find(_ url: RouteURL) throws(RoutingError) -> FoundRoute? {
    try url.requireUTF8()
    return RouteSearch.first(for: url, in: self).flatMap { self[$0] }.map { FoundRoute(route: $0) }
  }

  func matchesQuery(of url: RouteURL, _ index: RouteIndex) -> Bool {
    guard let route = self[index] else { return false }
    return route.pattern.parameters.isEmpty || route.pattern.matchesQuery(of: url)
  }
}

extension RoutePattern {
  func matchesQuery(of url: RouteURL) -> Bool {
    for expected in parameters {
      guard let index = url.index(ofParameter: expected.name) else {
        if expected.isOptional { continue }
        return false
      }
      // The values of all occurrences, or of the first.
      for parameter in expected.isArray ? url.parameters[index...] : url.parameters[index...index]
      where !expected.isArray || url.isParameter(parameter, expected.name) {
        if !expected.type.matches(url.decoded.span.extracting(parameter.value.offsets)) { return false }
      }
    }
    return true
  }
}
