import Layers
import Posix
import Routing

struct Status {
  struct Layer {
    let path: String
    /// As the control file takes it.
    let encodedPath: String
    /// The path of the folder in the mount at which it is laid; nil for the root.
    var place: String?
    /// Whether it takes changes.
    let isWritable: Bool
    /// Whether its path leads nowhere, so that it is left out.
    let isAbsent: Bool
    let isWatched: Bool
    let reason: String?
    /// Seconds for which the layer has not answered; nil while it does.
    var unresponsive: Int?
    /// nil for a directory.
    var archive: ArchiveStatus?
    /// Names that several entries of a directory have where case does not count, in the directories read so far.
    var collisions = 0
    /// Entries that were refused, since overlayfs keeps what they show in other layers; an example for those who may list it.
    var overlayReferences = 0
    var overlayReference: String?
    /// What the user may have meant instead of this layer.
    var hint: String?

    fileprivate func write(to json: inout JSONWriter) {
      json.object { json in
        json.member("path", path)
        json.member("encodedPath", encodedPath)
        json.member("place", place)
        json.member("kind", archive == nil ? "directory" : "archive")
        json.member("writable", isWritable)
        json.member("absent", isAbsent)
        json.member("caching", isWatched && reason == nil)
        json.member("reason", reason)
        json.member("unresponsive", unresponsive)
        json.name("archive")
        if let archive { archive.write(to: &json) } else { json.null() }
        json.member("collisions", collisions)
        json.member("overlayReferences", overlayReferences)
        json.member("hint", hint)
      }
    }
  }
  struct UncachedDirectory {
    let layer: String
    /// nil for callers who might not be able to list the directory's parent.
    let path: String?
    let reason: String

    fileprivate func write(to json: inout JSONWriter) {
      json.object { json in
        json.member("layer", layer)
        json.member("path", path)
        json.member("reason", reason)
      }
    }
  }

  /// Where the daemon's messages go.
  let log: StandardError
  /// The mount options, by name.
  let options: [(name: String, value: String)]
  /// Those of them that were given and that another mount can have, as `-o` takes them; nil for a caller that may not know
  /// the files which they name.
  let reusableOptions: [[UInt8]]?
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
  let latencies: LatencyStatus
  let invalidations: [(String, UInt64)]
  /// Files whose content was stored in the page cache before the first READ.
  let readAhead: UInt64
  /// Directories that were listed before the first READDIR.
  let listedAhead: UInt64
  let announcements: AnnouncementStatus
  let overflows: Int
  let uncached: [UncachedDirectory]
  let innerMounts: [String]
  /// The cache of decoded archive entries; nil without archives.
  let contents: ContentCacheStatistics?
  /// nil if tables of strings are not merged.
  let tables: TableStatus?
  /// nil if the option is off.
  let passthrough: PassthroughStatus?
  /// nil if the mount does not outlive the process.
  let survival: SurvivalStatus?
  /// Why it does not although it was to.
  let survivalObstacle: String?

  var json: String {
    JSONWriter.object { json in
      json.member("version", Volume.version)
      json.name("process")
      ServingProcess(isWorker: survival != nil).write(to: &json)
      json.name("options")
      json.object { json in for (name, value) in options { json.member(name, value) } }
      if let reusableOptions {
        json.name("encodedOptions")
        json.strings(reusableOptions.map { PercentCoding.encoded(path: $0) })
      }
      json.member("log", log.rawValue)
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
      json.name("latencies")
      latencies.write(to: &json)
      Self.write("invalidations", invalidations, to: &json)
      json.member("readAhead", readAhead)
      json.member("listedAhead", listedAhead)
      json.member("overflows", overflows)
      writeFeatures(to: &json)
      json.name("fallbacks")
      json.array(uncached) { $1.write(to: &$0) }
      json.name("innerMounts")
      json.strings(innerMounts)
    }
  }

  private func writeFeatures(to json: inout JSONWriter) {
    json.name("strings")
    if let tables { tables.write(to: &json) } else { json.null() }
    json.name("passthrough")
    if let passthrough { passthrough.write(to: &json) } else { json.null() }
    json.name("survival")
    if let survival { survival.write(to: &json) } else { json.null() }
    json.member("survivalObstacle", survivalObstacle)
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

  var text: String {
    var lines = ["bundlefs \(Volume.version), cache=\(cache)", "layers, topmost first:"]
    for layer in layers {
      let note = layer.reason.map { layer.isAbsent ? " (\($0))" : " (cached for 1 s only: \($0))" }
      lines.append("  \(layer.path)" + (note ?? ""))
      if let seconds = layer.unresponsive { lines.append("    does not answer, since \(seconds) s") }
      lines += layer.archive?.lines.map { "    \($0)" } ?? []
      if layer.collisions > 0 {
        let names = layer.collisions == 1 ? "1 name" : "\(layer.collisions) names"
        lines.append("    \(names) in several spellings in one folder; see 'bundlefs diff'")
      }
      if layer.overlayReferences > 0 {
        let entries = layer.overlayReferences == 1 ? "1 entry" : "\(layer.overlayReferences) entries"
        let example = layer.overlayReference.map { ", such as \($0)," } ?? ""
        lines.append(
          "    \(entries)\(example) cannot be read: overlayfs (metacopy, redirect_dir) keeps the content elsewhere; "
            + "merge the layers with overlayfs, and use the result")
      }
      if let hint = layer.hint { lines.append("    hint: \(hint)") }
    }
    lines += bundle.lines
    if let contents { lines.append(contents.line) }
    lines += tables?.lines ?? []
    if let passthrough { lines.append(passthrough.line) }
    if let survival { lines.append(survival.text) }
    if let survivalObstacle { lines.append("the mount ends with its process: \(survivalObstacle)") }
    if log == .none {
      lines.append(
        "messages go nowhere: there is neither a journal nor syslog; the option 'log=FILE' keeps them")
    }
    lines.append(
      "nodes known to the kernel: \(nodes); open descriptors: \(descriptors); watches: \(watches)")
    lines.append(
      "requests: " + Self.counts(requests)
        + "; files read ahead: \(readAhead); directories listed ahead: \(listedAhead)")
    lines.append("invalidations: " + Self.counts(invalidations) + "; event queue overflows: \(overflows)")
    lines.append(announcements.line)
    lines.append(
      control.isEmpty
        ? "no control file (control=none)"
        : "routes in \(control): \(routes); results since the mount: \(results)")
    if !uncached.isEmpty { lines.append("directories cached for 1 s only, with all below them:") }
    lines += uncached.map { "  \($0.path.map { "/" + $0 } ?? "a directory") (\($0.layer): \($0.reason))" }
    lines += innerMounts.map { "mounted at \($0): other spellings of this path show what lies beneath" }
    // Names and what a bundle says may come from untrusted sources.
    return lines.map(\.escapingControls).joined(separator: "\n")
  }

  private static func counts(_ counts: [(String, UInt64)]) -> String {
    let shown = counts.filter { $0.1 > 0 }.map { "\($0.0) \($0.1)" }
    return shown.isEmpty ? "none" : shown.joined(separator: ", ")
  }
}

extension [UInt8] {
  var text: String { String(escaping: self) }
}
