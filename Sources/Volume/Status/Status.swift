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

  /// One JSON object (RFC 8259).
  var json: String {
    let layers = layers.map { layer in
      #"{"path":\#(JSONText.quoted(layer.path)),"caching":\#(layer.isWatched && layer.reason == nil),"#
        + #""reason":\#(layer.reason.map(JSONText.quoted) ?? "null"),"#
        + #""archive":\#(layer.archive?.json ?? "null")}"#
    }
    let fallbacks = fallbacks.map { fallback in
      #"{"layer":\#(JSONText.quoted(fallback.layer)),"path":\#(JSONText.quoted(fallback.path)),"#
        + #""reason":\#(JSONText.quoted(fallback.reason))}"#
    }
    return [
      #"{"version":\#(JSONText.quoted(Volume.version)),"cache":\#(JSONText.quoted(cache))"#,
      #""control":\#(JSONText.quoted(control)),"routes":\#(routes),"results":\#(results)"#,
      #""layers":[\#(layers.joined(separator: ","))],"bundle":\#(bundle.json),"watches":\#(watches),"nodes":\#(nodes)"#,
      #""descriptors":\#(descriptors),"requests":\#(Self.object(requests))"#,
      #""invalidations":\#(Self.object(invalidations)),"readAhead":\#(readAhead),"listedAhead":\#(listedAhead)"#,
      #""overflows":\#(overflows),"passthrough":\#(passthrough?.json ?? "null"),"announce":\#(announcements.json),"contents":\#(contents?.json ?? "null")"#,
      #""fallbacks":[\#(fallbacks.joined(separator: ","))]}"#,
    ].joined(separator: ",")
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

  private static func object(_ counts: [(String, UInt64)]) -> String {
    "{" + counts.map { "\(JSONText.quoted($0.0)):\($0.1)" }.joined(separator: ",") + "}"
  }
}

extension [UInt8] {
  /// The bytes as text; what is not UTF-8 is replaced.
  var text: String { String(decoding: self, as: UTF8.self) }
}
