import Layers
import Routing

/// The part of `bundlefs status` about merged tables of strings.
struct TableStatus {
  private struct Failure {
    let layer: String
    /// nil for callers who might not be able to list the directory.
    let path: String?
    let reason: String
  }
  private let failures: [Failure]

  /// - Parameter showsNames: whether to name the tables.
  init(_ tables: MergedTables, _ stack: LayerStack, showsNames: Bool) {
    failures = tables.failures.map { failure in
      let layer = stack[failure.layer]
      return Failure(
        layer: layer.path.text, path: showsNames ? failure.path(in: layer).text : nil, reason: failure.reason)
    }.sorted { ($0.layer, $0.path ?? "") < ($1.layer, $1.path ?? "") }
  }

  func write(to json: inout JSONWriter) {
    json.object { json in
      json.name("unmerged")
      json.array(failures) { json, failure in
        json.object { json in
          json.member("layer", failure.layer)
          json.member("path", failure.path)
          json.member("reason", failure.reason)
        }
      }
    }
  }

  var lines: [String] {
    if failures.isEmpty { return ["tables of strings are merged key by key"] }
    return ["tables of strings are merged key by key, but for these, which are not merged:"]
      + failures.map { "  \($0.path ?? "a table in \($0.layer)"):\($0.reason)" }
  }
}

extension TableFailure {
  /// The name shown to users.
  fileprivate func path(in layer: Layer) -> [UInt8] {
    guard let directory, let folder = layer.folder else {
      return layer.laidPath.path + Array("!/…/".utf8) + name
    }
    let slash = [UInt8(ascii: "/")]
    let parent = folder.isPrivateClone ? folder.path + (directory == slash ? [] : directory) : directory
    return parent + slash + name
  }
}
