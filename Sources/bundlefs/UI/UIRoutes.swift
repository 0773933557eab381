import ControlClient
import Posix
import Routing
import WebServer

/// Posts a URL to a mount, or asks which route takes it.
struct UIRoutes {
  let mountPoint: MountPoint

  func response(_ url: String, isMatch: Bool) throws(WebError) -> WebResponse {
    let line = Array(url.utf8).trimmed
    if line.isEmpty || line.contains(UInt8(ascii: "\n")) || "#{".utf8.contains(line[0]) {
      throw WebError(400, "'\(url)' is not a URL")
    }
    // Commands of the control file are none of the page's business.
    guard case .post(let posted) = try? ControlCommand(line), posted.scheme != "bundlefs" else {
      throw WebError(400, "'\(url)' is not a URL that a route can take")
    }
    let outcome = try WebError.from { () throws(Failure) in
      let control = try mountPoint.controlFile()
      return try Failure.naming(control.path.shown) { () throws(Errno) in
        var writer = try ControlFileWriter(control)
        let command = (isMatch ? Array("match ".utf8) : []) + line
        return try writer.write(command, url: RouteCommand.url(of: command))
      }
    }
    if let result = outcome.result {
      return .json("{\"results\":[\(result.pageJSON ?? result.bytes.shown)]}")
    }
    throw WebError(409, outcome.reason())
  }
}

extension [UInt8] {
  /// Without white space around them.
  fileprivate var trimmed: [UInt8] {
    let isInner = { (byte: UInt8) in !" \t\r".utf8.contains(byte) }
    guard let first = firstIndex(where: isInner), let last = lastIndex(where: isInner) else { return [] }
    return Array(self[first...last])
  }
}
