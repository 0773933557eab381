import Layers
import Posix
import Routing

/// The comparison as one JSON object, with one entry per line.
enum ComparisonJSON {
  static func text(
    _ walker: inout ComparisonWalker, includesUnchanged: Bool
  ) throws(Errno) -> String {
    var entries: [JSONWriter] = []
    let layers = walker.layers
    try walker.walk { entry in
      if includesUnchanged || entry.name.isCounted { entries.append(member(entry, layers)) }
    }
    return text(walker, entries)
  }

  private static func text(_ walker: borrowing ComparisonWalker, _ entries: [JSONWriter]) -> String {
    let (layers, tally, faults) = (walker.layers, walker.tally, walker.faults)
    return JSONWriter.object { json in
      write(tally, of: layers, to: &json)
      json.name("entries")
      json.array(entries, onLines: true) { $0.append($1) }
      json.name("faults")
      json.array(faults, onLines: true) { write($1, to: &$0) }
    }
  }

  /// What stands beside the entries, as an object of its own.
  static func summary(_ walker: borrowing ComparisonWalker) -> String {
    let (layers, tally, faults) = (walker.layers, walker.tally, walker.faults)
    return JSONWriter.object { json in
      write(tally, of: layers, to: &json)
      json.name("faults")
      json.array(faults, onLines: true) { write($1, to: &$0) }
    }
  }

  private static func write(_ tally: ComparisonTally, of layers: [String], to json: inout JSONWriter) {
    json.name("layers")
    json.array(zip(layers, tally.layers)) { write($1.1, of: $1.0, to: &$0) }
    json.member("overridden", tally.total.overrides)
    json.member("added", tally.total.adds)
    json.member("hidden", tally.total.hides)
    json.member("unchanged", tally.unchanged)
    json.member("collisions", tally.collisions)
    json.member("merged", tally.merged)
    json.member("excluded", tally.excluded)
  }

  private static func write(_ layer: ComparisonTally.Layer, of path: String, to json: inout JSONWriter) {
    json.object { json in
      json.member("path", path)
      json.member("overrides", layer.overrides)
      json.member("adds", layer.adds)
      json.member("hides", layer.hides)
      json.member("merges", layer.merges)
    }
  }

  private static func write(_ fault: ComparisonWalker.Fault, to json: inout JSONWriter) {
    json.object { json in
      json.member("path", String(escaping: fault.path.joinedPath))
      json.member("error", fault.reason)
    }
  }

  static func member(_ entry: ComparisonWalker.Entry, _ layers: [String]) -> JSONWriter {
    var json = JSONWriter()
    json.object { json in
      json.member("path", String(escaping: entry.path.joinedPath))
      if String(validating: entry.path.joinedPath, as: UTF8.self) == nil {
        json.member("encodedPath", PercentCoding.encoded(path: entry.path.joinedPath[...]))
      }
      json.member("kind", word(for: entry.name.kind))
      json.member("verdict", word(for: entry.name.status))
      json.member("layer", entry.name.layers.first.map { layers[$0] })
      json.name("below")
      json.strings(entry.name.layers.dropFirst().map { layers[$0] })
      if entry.name.status == .merged { write(entry.name.keys, of: layers, to: &json) }
    }
    return json
  }

  private static func write(_ keys: ComparedKeys, of layers: [String], to json: inout JSONWriter) {
    json.name("keys")
    json.array(keys.keys) { json, key in
      json.object { json in
        json.member("key", key.key)
        json.member("verdict", key.isOverride ? "overridden" : "added")
        json.member("layer", layers.indices.contains(key.layer) ? layers[key.layer] : nil)
      }
    }
    if keys.more > 0 { json.member("furtherKeys", keys.more) }
  }

  static func word(for kind: FileKind) -> String {
    switch kind {
    case .regular: "file"
    case .directory: "directory"
    case .symbolicLink: "link"
    case .fifo: "fifo"
    case .socket: "socket"
    case .characterDevice, .blockDevice: "device"
    }
  }

  static func word(for status: ComparedName.Status) -> String {
    switch status {
    case .unchanged: "unchanged"
    case .overridden: "overridden"
    case .added: "added"
    case .hidden: "hidden"
    case .collision: "collision"
    case .merged: "merged"
    case .excluded: "excluded"
    }
  }
}
