import Fuse
import Layers
import Posix
import Routing

extension Volume {
  public func control(
    _ command: UInt32, of node: NodeID, size: Int, reply: consuming Reply<Answers.Control>
  ) {
    let page = UInt8(truncatingIfNeeded: command)
    guard node == .root, let form = StatusProtocol.Form(rawValue: UInt8(truncatingIfNeeded: command >> 8)),
      command == StatusProtocol.command(form, page: page)
    else {
      reply.fail(.notTypewriter)
      return
    }
    if form == .farewell, control.isOwner(reply.requester) { control.sendListenersAway() }
    let fresh = page == 0 ? told(form) : nil
    let text = statusTexts.withLock { texts in
      // What fits a page is not asked for again.
      if let fresh, fresh.count > StatusProtocol.pageSize { texts[form] = fresh }
      return fresh ?? texts[form] ?? []
    }
    let length = UInt32(text.count)
    let start = min(Int(page) * StatusProtocol.pageSize, text.count)
    let part = text[start..<min(start + StatusProtocol.pageSize, text.count)]
    reply.pay(withUnsafeBytes(of: length.littleEndian) { Array($0) } + part)
  }

  private func told(_ form: StatusProtocol.Form) -> [UInt8] {
    switch form {
    case .json: Array(status.json.utf8)
    case .text: Array(status.text.utf8)
    case .controlName: control.name
    case .resources: resourcePlaces
    case .farewell: []
    }
  }

  private var status: Status {
    let requests = requests.withLock { $0 }
    // This asks the layers, so it comes before the lock.
    let layers = stack.layers.indices.map(layerStatus)
    let bundle = bundleStatus
    let (routes, results) = control.counts
    return table.withLock { table in
      Status(
        cache: options.cache.description, control: control.name.text, routes: routes, results: results,
        layers: layers, bundle: bundle,
        watches: coherence?.watches.count ?? 0, nodes: table.count, descriptors: table.recent.count,
        requests: RequestKind.allCases.map { ($0.name, requests?[$0] ?? 0) },
        invalidations: [
          ("entries", counters.entries.count), ("attributes", counters.attributes.count),
          ("contents", counters.contents.count),
        ],
        readAhead: counters.readAhead.count,
        announcements: AnnouncementStatus(options.announce, announcer?.figures),
        overflows: coherence?.overflows ?? 0, fallbacks: fallbackDirectories(table),
        contents: options.contents?.figures)
    }
  }

  private func layerStatus(_ layer: Int) -> Status.Layer {
    Status.Layer(
      path: stack.layers[layer].path.text, isWatched: coherence != nil,
      reason: silence[layer] ?? coherence?.fault(of: layer),
      archive: stack.layers[layer].archive.map { ArchiveStatus($0) })
  }

  /// The directories that are the cause of short timeouts; the first hundred.
  private func fallbackDirectories(_ table: NodeTable) -> [Status.Fallback] {
    var found: [Status.Fallback] = []
    for slot in 1..<UInt32(table.nodes.count) where found.count < 100 {
      guard let fallback = table[slot].directory?.fallback else { continue }
      found.append(
        Status.Fallback(
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
  struct Fallback {
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
  /// What programs that watch the mount were told.
  let announcements: AnnouncementStatus
  let overflows: Int
  let fallbacks: [Fallback]
  /// What is unpacked of archives; nil without archives.
  let contents: ContentFigures?

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
      #""invalidations":\#(Self.object(invalidations)),"readAhead":\#(readAhead),"overflows":\#(overflows)"#,
      #""announce":\#(announcements.json)"#,
      #""contents":\#(contents?.json ?? "null"),"fallbacks":[\#(fallbacks.joined(separator: ","))]}"#,
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
    lines.append(
      "nodes known to the kernel: \(nodes); with open descriptors: \(descriptors); watches: \(watches)")
    lines.append("requests: " + Self.counts(requests) + "; files read ahead: \(readAhead)")
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
