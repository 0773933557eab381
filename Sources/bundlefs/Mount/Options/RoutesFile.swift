import Posix
import Routing

/// A file of routes (`-o routes=FILE`), such as a saved copy of a control file.
struct RoutesFile {
  private let path: [UInt8]

  init(_ path: [UInt8]) { self.path = path }

  /// Appends the file's routes to the table. Blank lines, comments and results are ignored.
  func load(into table: inout RouteTable) throws(Failure) {
    let text = try Failure.naming("routes \(path.shown)") { () throws(Errno) in
      try Descriptor.open(path, [.read]).readToEnd()
    }
    let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      do throws(RoutingError) { try register(line, in: &table) } catch {
        throw .failed("routes \(path.shown):\(index + 1):\(error.column ?? 1): \(error.message)")
      }
    }
  }

  private func register(_ line: ArraySlice<UInt8>, in table: inout RouteTable) throws(RoutingError) {
    switch try ControlCommand(line) {
    case .ignored: break
    case .route(let route, nil): try table.append(route)
    case .route(let route, let other?): try table.insert(route, before: other)
    case .post, .match, .unroute, .reset:
      throw RoutingError(.malformed, "only 'route NAME PATTERN' lines are allowed in a routes file", at: 0)
    }
  }
}
