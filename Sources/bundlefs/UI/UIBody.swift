import Posix
import Routing
import WebServer

/// The JSON that the page sends.
struct UIBody {
  /// The most bytes of it.
  static let limit = 4 << 20

  let value: JSONValue

  init(_ text: [UInt8]) throws(WebError) {
    guard let value = JSONValue(text), case .object = value else {
      throw WebError(400, "the request is no JSON object")
    }
    self.value = value
  }

  func string(_ name: String) throws(WebError) -> String {
    guard let string = value[name]?.string else { throw WebError(400, "the request needs '\(name)'") }
    return string
  }

  /// Paths below the root of a mount: `paths` as they are, or `encodedPaths` percent-encoded.
  func paths() throws(WebError) -> [[[UInt8]]] {
    let paths = try list("paths", "encodedPaths")
    if paths.isEmpty { throw WebError(400, "the request names no path") }
    return try paths.map { path throws(WebError) in try Self.components(path) }
  }

  /// One path, likewise.
  func path() throws(WebError) -> [[UInt8]] {
    try Self.components(try bytes(value["path"], value["encodedPath"], "path"))
  }

  /// Absolute paths: `layers` or `encodedLayers`.
  func layers() throws(WebError) -> [[UInt8]] { try list("layers", "encodedLayers") }

  static func components(_ path: [UInt8]) throws(WebError) -> [[UInt8]] {
    guard let components = WebText.components(of: path, isEncoded: false) else {
      throw WebError(400, "the request needs a path without empty components, '.' and '..'")
    }
    return components
  }

  private func list(_ name: String, _ encodedName: String) throws(WebError) -> [[UInt8]] {
    let (plain, encoded) = (value[name], value[encodedName])
    guard case .array(let elements) = encoded ?? plain else {
      throw WebError(400, "the request needs '\(name)'")
    }
    return try elements.map { element throws(WebError) in
      try bytes(encoded == nil ? element : nil, encoded == nil ? nil : element, name)
    }
  }

  private func bytes(
    _ plain: JSONValue?, _ encoded: JSONValue?, _ name: String
  ) throws(WebError) -> [UInt8] {
    if let encoded = encoded?.string, let bytes = WebText.decoded(encoded.utf8) { return bytes }
    if encoded == nil, let plain = plain?.string, !plain.utf8.contains(0) { return Array(plain.utf8) }
    throw WebError(400, "'\(name)' in the request is malformed")
  }
}
