import Posix
import RemoteFiles
import Routing

/// A command of the scheme `bundlefs:`, which no route can take.
enum BuiltInCommand: Equatable {
  case sync
  /// `bundlefs:///invalidate[/PATH]`; the path's names from the root.
  case invalidate([[UInt8]])
  /// `bundlefs:///layers?substitution=PATH&…`; the paths of the new substitutions, top first.
  case layers([[UInt8]])

  static let scheme = "bundlefs"

  /// Whether the line may be one that takes long, before it is parsed.
  static func mayTakeLong(_ line: ArraySlice<UInt8>) -> Bool { line.starts(with: "bundlefs:///layers".utf8) }

  /// The line as its result shows it: without what may be secret in the URLs of layers.
  static func shown(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    guard mayTakeLong(line), let mark = line.firstIndex(of: UInt8(ascii: "?")) else { return line }
    let start = Array("substitution=".utf8)
    let parameters = line[(mark + 1)...].split(
      separator: UInt8(ascii: "&"), omittingEmptySubsequences: false
    ).map { parameter -> [UInt8] in
      let value = String(decoding: parameter.dropFirst(start.count), as: UTF8.self)
      guard parameter.starts(with: start), let layer = PercentCoding.decoded(value), RemoteURL.isURL(layer)
      else { return Array(parameter) }
      return start + Array(PercentCoding.encoded(path: RemoteURL.redacted(layer)).utf8)
    }
    return line[...mark] + parameters.joined(separator: [UInt8(ascii: "&")])
  }

  /// - Throws: EINVAL for a path that no file can have; ENOENT for an unknown command.
  init(_ url: RouteURL) throws(RoutingError) {
    let names = url.components
    let command = url.hasHost ? nil : names.first.map { String(decoding: $0, as: UTF8.self) }
    switch command {
    case "sync" where names.count == 1: self = .sync
    case "invalidate":
      let path = Array(names.dropFirst())
      if path.contains(where: { $0.contains(0) || $0.contains(UInt8(ascii: "/")) }) {
        throw RoutingError(.malformed, "a name in the path holds '/' or NUL, which no file's does")
      }
      self = .invalidate(path)
    case "layers" where names.count == 1: self = .layers(try Self.substitutions(url))
    default:
      throw RoutingError(
        .noRoute,
        "only bundlefs:///sync, bundlefs:///invalidate[/PATH] and bundlefs:///layers[?substitution=PATH] "
          + "are built in")
    }
  }

  private static func substitutions(_ url: RouteURL) throws(RoutingError) -> [[UInt8]] {
    // The path would be another one without it.
    if url.fragment != nil { throw RoutingError(.malformed, "a '#' in a path is written %23") }
    var paths: [[UInt8]] = []
    for (name, value) in url.query {
      guard name.elementsEqual("substitution".utf8) else {
        throw RoutingError(.malformed, "the only parameter of bundlefs:///layers is 'substitution'")
      }
      guard value.first == UInt8(ascii: "/") || RemoteURL.isURL(value), !value.contains(0) else {
        throw RoutingError(.malformed, "'\(String(escaping: value))' is neither an absolute path nor a URL")
      }
      paths.append(value)
    }
    return paths
  }
}
