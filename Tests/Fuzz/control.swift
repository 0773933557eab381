import Routing

/// libFuzzer's entry point. The input is lines of the control file, executed on one table.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let text = Array(UnsafeBufferPointer(start: start, count: count))
  var table = RouteTable()
  for line in text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
    do throws(RoutingError) {
      try execute(ControlCommand(line), &table)
    } catch {
      precondition(error.offset.map { $0 <= line.count } ?? (error.code != .malformed))
    }
  }
  precondition(table.routes.count == table.count && table.textSize == table.text.utf8.count)
  checkText(of: table)
  return 0
}

private func execute(_ command: ControlCommand, _ table: inout RouteTable) throws(RoutingError) {
  switch command {
  case .ignored: break
  case .post(let url), .match(let url):
    guard let match = try table.match(url) else { return }
    precondition(table.routes.contains { $0.name == match.name })
    precondition(match.userInfo.allSatisfy { match[$0.key] == $0.value }, "keys are unique")
  case .route(let route, nil): try table.append(route)
  case .route(let route, let other?): try table.insert(route, before: other)
  case .unroute(let name):
    table.remove(name: name)
    precondition(!table.routes.contains { Array($0.name.utf8) == Array(name.utf8) })
  case .reset:
    table.removeAll()
    precondition(table.routes.isEmpty)
  }
}

/// Checks that the text of a table recreates it.
private func checkText(of table: RouteTable) {
  var copy = RouteTable()
  do throws(RoutingError) {
    for line in table.text.utf8.split(separator: UInt8(ascii: "\n")) {
      try execute(ControlCommand(line), &copy)
    }
  } catch {
    fatalError("\(error)")
  }
  precondition(copy.routes == table.routes)
}
