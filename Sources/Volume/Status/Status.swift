import Fuse
import Layers
import Posix
import Routing

extension Volume {
  var status: Status {
    let requests = requests.withLock { $0 }
    let (routes, results) = control.counts
    // Nothing else is asked with the table locked: a watch, for one, can be long in being set.
    let (nodes, descriptors, fallbacks) = table.withLock { table in
      (table.count, table.recent.count, fallbackDirectories(table))
    }
    return Status(
      cache: options.cache.description, control: control.name.text, routes: routes, results: results,
      layers: stack.layers.indices.map(layerStatus), bundle: bundleStatus,
      watches: coherence?.watches.count ?? 0, nodes: nodes, descriptors: descriptors,
      requests: RequestKind.allCases.map { ($0.name, requests?[$0] ?? 0) },
      invalidations: [
        ("entries", counters.entries.count), ("attributes", counters.attributes.count),
        ("contents", counters.contents.count),
      ],
      readAhead: counters.readAhead.count, listedAhead: counters.listedAhead.count,
      announcements: AnnouncementStatus(options.announce, announcer?.figures),
      overflows: coherence?.overflows ?? 0, fallbacks: fallbacks,
      contents: options.contents?.figures, passthrough: passthrough.withLock { $0 }.status)
  }

  private func layerStatus(_ layer: Int) -> Status.Layer {
    Status.Layer(
      path: stack.layers[layer].path.text, isWatched: coherence != nil,
      reason: silence[layer] ?? coherence?.fault(of: layer),
      archive: stack.layers[layer].archive.map { ArchiveStatus($0) })
  }

  /// The directories that are the cause of short timeouts; the first hundred.
  private func fallbackDirectories(_ table: NodeTable) -> [Status.UncachedReason] {
    var found: [Status.UncachedReason] = []
    for slot in 1..<UInt32(table.nodes.count) where found.count < 100 {
      guard let fallback = table[slot].directory?.uncachedReason else { continue }
      found.append(
        Status.UncachedReason(
          layer: stack.layers[fallback.layer].path.text,
          path: table.path(of: slot).map(\.text).joined(separator: "/"), reason: fallback.reason))
    }
    return found
  }
}

/// What a mount tells of itself.
struct Status {
  struct Layer {
    let path: String
    /// Whether changes in it are listened for.
    let isWatched: Bool
    /// What is wrong with it.
    let reason: String?
    /// If it is one.
    var archive: ArchiveStatus?
  }
  struct UncachedReason {
    let layer: String
    let path: String
    let reason: String
  }
  let cache: String
  let control: String
  let routes: Int
  let results: UInt64
  let layers: [Layer]
  let bundle: BundleStatus
  let watches: Int
  let nodes: Int
  let descriptors: Int
  let requests: [(String, UInt64)]
  let invalidations: [(String, UInt64)]
  /// Files that were put into the kernel's cache before anybody asked.
  let readAhead: UInt64
  /// Directories that were listed before anybody asked.
  let listedAhead: UInt64
  /// What programs that watch the mount were told.
  let announcements: AnnouncementStatus
  let overflows: Int
  let fallbacks: [UncachedReason]
  /// What is unpacked of archives; nil without archives.
  let contents: ContentFigures?
  /// nil if it is not wanted.
  let passthrough: PassthroughStatus?

  /// The JSON object.
  var json: String {
    JSONWriter.object { json in
      json.member("version", Volume.version)
      json.member("cache", cache)
      json.member("control", control)
      json.member("routes", routes)
      json.member("results", results)
      json.name("layers")
      json.array(layers) { $1.write(to: &$0) }
      json.name("bundle")
      bundle.write(to: &json)
      json.member("watches", watches)
      json.member("nodes", nodes)
      json.member("descriptors", descriptors)
      Self.write("requests", requests, to: &json)
      Self.write("invalidations", invalidations, to: &json)
      json.member("readAhead", readAhead)
      json.member("listedAhead", listedAhead)
      json.member("overflows", overflows)
      writeFeatures(to: &json)
      json.name("fallbacks")
      json.array(fallbacks) { $1.write(to: &$0) }
    }
  }

  private func writeFeatures(to json: inout JSONWriter) {
    json.name("passthrough")
    if let passthrough { passthrough.write(to: &json) } else { json.null() }
    json.name("announce")
    announcements.write(to: &json)
    json.name("contents")
    if let contents { contents.write(to: &json) } else { json.null() }
  }

  private static func write(_ name: String, _ counts: [(String, UInt64)], to json: inout JSONWriter) {
    json.name(name)
    json.object { json in
      for (name, count) in counts { json.member(name, count) }
    }
  }

  /// Lines for a person.
  var text: String {
    var lines = ["bundlefs \(Volume.version), cache=\(cache)", "layers, the first on top:"]
    for layer in layers {
      lines.append("  \(layer.path)" + (layer.reason.map { " (kept for a second only: \($0))" } ?? ""))
      lines += layer.archive?.lines.map { "    \($0)" } ?? []
    }
    lines += bundle.lines
    if let contents { lines.append(contents.line) }
    if let passthrough { lines.append(passthrough.line) }
    lines.append(
      "nodes known to the kernel: \(nodes); with open descriptors: \(descriptors); watches: \(watches)")
    lines.append(
      "requests: " + Self.counts(requests)
        + "; files read ahead: \(readAhead); directories listed ahead: \(listedAhead)")
    lines.append("taken back: " + Self.counts(invalidations) + "; events lost: \(overflows) times")
    lines.append(announcements.line)
    lines.append("routes in \(control): \(routes); results since the mount: \(results)")
    if !fallbacks.isEmpty { lines.append("kept for a second only, with all below:") }
    lines += fallbacks.map { "  /\($0.path) (\($0.layer): \($0.reason))" }
    return lines.joined(separator: "\n")
  }

  private static func counts(_ counts: [(String, UInt64)]) -> String {
    let shown = counts.filter { $0.1 > 0 }.map { "\($0.0) \($0.1)" }
    return shown.isEmpty ? "none" : shown.joined(separator: ", ")
  }
}

extension Status.Layer {
  fileprivate func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("path", path)
      json.member("caching", isWatched && reason == nil)
      json.member("reason", reason)
      json.name("archive")
      if let archive { archive.write(to: &json) } else { json.null() }
    }
  }
}

extension Status.UncachedReason {
  fileprivate func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("layer", layer)
      json.member("path", path)
      json.member("reason", reason)
    }
  }
}

extension [UInt8] {
  /// The bytes as text; what is not UTF-8 is replaced.
  var text: String { String(decoding: self, as: UTF8.self) }
}
