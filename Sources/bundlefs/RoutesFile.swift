import Posix
import Routing

/// A file of routes, such as a control file's saved text.
struct RoutesFile {
  private let path: [UInt8]

  init(_ path: [UInt8]) { self.path = path }

  /// Registers its routes after those that are there. Blank lines, comments and results are passed over.
  func load(into table: inout RouteTable) throws(Failure) {
    let text: [UInt8]
    do throws(Errno) {
      text = try withCName(path) { name throws(Errno) in try Descriptor.open(name, [.read]).readToEnd() }
    } catch {
      throw .failed("routes \(path.shown): \(error)")
    }
    let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (place, line) in lines.enumerated() {
      do throws(RoutingError) { try register(line, in: &table) } catch {
        throw .failed("routes \(path.shown):\(place + 1):\(error.column ?? 1): \(error.message)")
      }
    }
  }

  private func register(_ line: ArraySlice<UInt8>, in table: inout RouteTable) throws(RoutingError) {
    switch try ControlCommand(line) {
    case .ignored: break
    case .route(let route): try table.append(route)
    case .post, .match, .unroute, .reset:
      throw RoutingError(.malformed, "only 'route NAME PATTERN' may stand in a file of routes", at: 0)
    }
  }
}
