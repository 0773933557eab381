import Foundation

@testable import Routing

/// The bytes of a text, in which `\xNN` denotes an arbitrary byte.
func bytes(_ text: String) -> [UInt8] {
  var bytes: [UInt8] = []
  var rest = text[...]
  while let first = rest.first {
    if rest.hasPrefix("\\x"), let byte = UInt8(rest.dropFirst(2).prefix(2), radix: 16) {
      bytes.append(byte)
      rest = rest.dropFirst(4)
    } else {
      bytes += Array(String(first).utf8)
      rest = rest.dropFirst()
    }
  }
  return bytes
}

/// A table of routes.
func table(_ routes: [(name: String, pattern: String)]) throws -> RouteTable {
  var table = RouteTable()
  for route in routes {
    try table.append(Route(name: route.name, pattern: RoutePattern(route.pattern)))
  }
  return table
}

/// Parses a JSON object with Foundation.
func parsed(_ json: [UInt8]) throws -> [String: Any] {
  let object = try JSONSerialization.jsonObject(with: Data(json))
  guard let object = object as? [String: Any] else { throw NotAnObject() }
  return object
}

struct NotAnObject: Error {}

extension RouteMatch {
  /// The bound values as JSON, then the query and the fragment.
  var shown: String {
    var json = JSONWriter()
    json.object { json in
      for item in userInfo {
        json.name(item.key)
        json.value(item.value)
      }
    }
    return String(decoding: json.bytes, as: UTF8.self) + (query.map { " query=\($0)" } ?? "")
      + (fragment.map { " fragment=\($0)" } ?? "")
  }
}
