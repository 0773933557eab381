import Routing

/// libFuzzer's entry point. The input is two patterns on a line each.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let text = Array(UnsafeBufferPointer(start: start, count: count))
  var table = RouteTable()
  for line in text.split(separator: UInt8(ascii: "\n"), maxSplits: 1) {
    do throws(RoutingError) {
      let pattern = try RoutePattern(Array(line))
      // Percent-encoding may exceed the maximum length.
      guard let again = try? RoutePattern(pattern.description) else {
        precondition(pattern.description.utf8.count > RouteURL.maxLength)
        continue
      }
      precondition(
        again == pattern && again.description == pattern.description, "the description round-trips")
      try check(Route(name: "N", pattern: pattern), &table)
    } catch {
      precondition(error.offset.map { $0 <= line.count } ?? (error.code != .malformed))
    }
  }
  return 0
}

/// Checks that a registered pattern shadows itself.
private func check(_ route: Route, _ table: inout RouteTable) throws(RoutingError) {
  try table.append(route)
  do throws(RoutingError) {
    try table.append(route)
    fatalError("a pattern shadows itself")
  } catch {
    precondition(error.code == .shadowed)
  }
}
