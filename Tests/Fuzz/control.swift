import Routing

/// libFuzzer's entry: the bytes are written to the control file, line by line, with one table for all.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let text = Array(UnsafeBufferPointer(start: start, count: count))
  var table = RouteTable()
  for line in text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
    do throws(RoutingError) {
      try carryOut(ControlCommand(line), &table)
    } catch {
      precondition(error.offset.map { $0 <= line.count } ?? (error.code != .malformed))
    }
  }
  precondition(table.routes.count == table.count)
  checkText(of: table)
  return 0
}

private func carryOut(_ line: ControlCommand, _ table: inout RouteTable) throws(RoutingError) {
  switch line {
  case .ignored: break
  case .post(let url), .match(let url):
    guard let match = try table.match(url) else { return }
    precondition(table.routes.contains { $0.name == match.name })
    precondition(match.userInfo.allSatisfy { match[$0.key] == $0.value }, "each key is there once")
  case .route(let route): try table.append(route)
  case .unroute(let name):
    table.remove(name: name)
    precondition(!table.routes.contains { Array($0.name.utf8) == Array(name.utf8) })
  case .reset:
    table.removeAll()
    precondition(table.routes.isEmpty)
  }
}

/// What a table shows makes the same table.
private func checkText(of table: RouteTable) {
  var copy = RouteTable()
  do throws(RoutingError) {
    for line in table.text.utf8.split(separator: UInt8(ascii: "\n")) {
      try carryOut(ControlCommand(line), &copy)
    }
  } catch {
    fatalError("\(error)")
  }
  precondition(copy.routes == table.routes)
}
