import ControlClient
import Posix
import Routing
import WebServer

/// The last results of a mount's routes, as the control file keeps them.
struct UIResults {
  let mount: UIMount

  /// So many are shown, the last ones.
  private static let most = 200
  /// Results beyond that are not read, in bytes.
  private static let longest = 64 << 20

  func response() throws(WebError) -> WebResponse {
    let text = try WebError.from { () throws(Failure) in
      let control = try mount.mountPoint.controlFile()
      return try Failure.naming(control.path.shown) { () throws(Errno) in
        let root = try mount.mountPoint.open([.pathOnly, .directory])
        let file = try withCName(control.name) { name throws(Errno) in try root.openRegularFile(name, [.read])
        }
        return try file.readAll(limit: Self.longest)
      }
    }
    let lines = text.split(separator: UInt8(ascii: "\n")).reversed()
    let results = Array(lines.lazy.compactMap { ResultLine($0)?.pageJSON }.prefix(Self.most)).reversed()
    return .json("{\"results\":[\(results.joined(separator: ",\n"))]}")
  }
}

extension ResultLine {
  /// The result for the page, with the types of the notification's values, which JavaScript does not distinguish: it has one
  /// kind of number.
  /// - Returns: nil for results of commands, such as those of this server.
  var pageJSON: String? {
    guard let value = JSONValue(bytes), value["url"]?.string?.hasPrefix("bundlefs:") == false,
      // A command in words, such as `route`.
      value["outcome"]?.string != "applied"
    else { return nil }
    guard case .object(let members) = value["userInfo"], bytes.last == UInt8(ascii: "}") else {
      return bytes.shown
    }
    let types = JSONWriter.object { json in
      for (name, value) in members.sorted(by: { $0.key < $1.key }) { json.member(name, Self.type(of: value)) }
    }
    return bytes.dropLast().map { $0 }.shown + ",\"types\":\(types)}"
  }

  private static func type(of value: JSONValue) -> String {
    switch value {
    case .string: "text"
    case .integer: "integer"
    case .number: "number"
    case .boolean: "boolean"
    case .array: "list"
    case .null, .object: "value"
    }
  }
}
