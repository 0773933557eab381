/// The arguments of `bundlefs ui MOUNTPOINT… [--port N] [--no-open]`.
struct UIArguments: Equatable {
  private(set) var mountPoints: [[UInt8]] = []
  /// 0 for a free one.
  private(set) var port: UInt16 = 0
  private(set) var opensBrowser = true

  init(_ arguments: [[UInt8]]) throws(Failure) {
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument.shown {
      case "--no-open": opensBrowser = false
      case "--port":
        guard let port = rest.popFirst().flatMap({ UInt16($0.shown) }), port > 0 else {
          throw .usage("'--port' needs a number from 1 to 65535")
        }
        self.port = port
      case let option where option.hasPrefix("--"): throw .usage("'ui' has no option '\(option)'")
      default: mountPoints.append(argument)
      }
    }
    if mountPoints.isEmpty { throw .usage("'ui' needs at least one MOUNTPOINT") }
  }
}
