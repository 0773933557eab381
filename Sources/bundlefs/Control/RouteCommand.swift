import ControlClient
import Posix
import Routing

/// `bundlefs route MOUNTPOINT URL…` and `bundlefs match MOUNTPOINT URL…`.
struct RouteCommand {
  private let control: ControlFileLocation
  private let urls: [[UInt8]]
  private let prefix: String

  init(_ arguments: [[UInt8]], posts: Bool) throws(Failure) {
    let name = posts ? "route" : "match"
    guard arguments.count >= 2 else { throw .usage("'\(name)' needs a MOUNTPOINT and at least one URL") }
    urls = Array(arguments.dropFirst())
    for url in urls where url.contains(UInt8(ascii: "\n")) {
      throw .usage("'\(url.shown)' contains a newline; pass each URL as an argument of its own")
    }
    prefix = posts ? "" : "match "
    control = try MountPoint(mounted: arguments[0]).controlFile()
  }

  /// - Returns: the exit status: 1 if a URL was rejected.
  func run() throws(Failure) -> CInt {
    try Failure.naming(control.path.shown) { () throws(Errno) in
      var status: CInt = 0
      var writer = try ControlFileWriter(control)
      for url in urls {
        let outcome = try writer.write(Array(prefix.utf8) + url, url: url)
        // Posted, by a user who may not read the results.
        if outcome.error == nil, !writer.readsResults, prefix.isEmpty { continue }
        guard let result = outcome.result else {
          Terminal.printError("\(url.shown): \(outcome.reason)")
          status = 1
          continue
        }
        Terminal.print(result.bytes.shown.escapingControls)
        if result.isRejected { status = 1 }
      }
      return status
    }
  }
}
