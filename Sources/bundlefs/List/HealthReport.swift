import Posix
import Routing

/// Whether a mount works, and what is wrong with it.
struct HealthReport: Equatable {
  /// The raw value is the exit status of `bundlefs health`.
  enum State: CInt {
    case healthy, degraded, dead

    var word: String {
      switch self {
      case .healthy: "healthy"
      case .degraded: "degraded"
      case .dead: "dead"
      }
    }
  }

  /// The mount point, or the path that leads to no mount.
  let path: [UInt8]
  let state: State
  let reasons: [String]

  /// Of what is no mount of bundlefs, or cannot be asked.
  init(dead path: [UInt8], _ reason: String) { (self.path, state, reasons) = (path, .dead, [reason]) }

  init(_ asked: Result<AskedMount, NoMount>) {
    switch asked {
    case .success(let asked): self.init(asked)
    case .failure(let missing): self.init(dead: missing.path, missing.reason)
    }
  }

  init(_ asked: AskedMount) {
    path = asked.mount.entry.mountPoint
    switch asked.inspection {
    case .alive:
      reasons = asked.inspection.status.map(Self.reasons) ?? ["its daemon reports no status that can be read"]
      state = reasons.isEmpty ? .healthy : .degraded
    case .stalled: (state, reasons) = (.degraded, [asked.inspection.fault ?? ""])
    case .dead, .unresponsive, .covered, .unknown: (state, reasons) = (.dead, [asked.inspection.fault ?? ""])
    }
  }

  // MARK: - What the status says

  /// What is wrong with a mount whose daemon answers.
  /// - Parameter status: what `bundlefs status --json` prints.
  static func reasons(_ status: JSONValue) -> [String] {
    guard let layers = MountedLayers(status)?.layers else { return ["its daemon does not report its layers"] }
    var reasons = layers.flatMap { layer in
      layer.problems.map { "\(layer.shown): \($0)" }
    }
    reasons += uncachedDirectories(status)
    reasons += overlayReferences(status)
    if let tables = elements(status["strings"]?["unmerged"]), !tables.isEmpty {
      reasons.append("tables of strings that cannot be merged: \(tables.count)")
    }
    if let reason = status["bundle"]?["reason"]?.string {
      reasons.append("the bundle is unreadable: \(reason)")
    }
    return reasons + restarts(status["survival"])
  }

  private static func elements(_ value: JSONValue?) -> [JSONValue]? {
    if case .array(let elements)? = value { elements } else { nil }
  }

  /// One line for all directories of a layer that have the same reason.
  private static func uncachedDirectories(_ status: JSONValue) -> [String] {
    var counts: [(name: String, count: Int)] = []
    for directory in elements(status["fallbacks"]) ?? [] {
      let name = "\(directory["layer"]?.string ?? "?"): \(directory["reason"]?.string ?? "?")"
      if let index = counts.firstIndex(where: { $0.name == name }) {
        counts[index].count += 1
      } else {
        counts.append((name, 1))
      }
    }
    return counts.map { "directories cached for 1 s only: \($0.count) (\($0.name))" }
  }

  private static func overlayReferences(_ status: JSONValue) -> [String] {
    (elements(status["layers"]) ?? []).compactMap { layer in
      guard let count = layer["overlayReferences"]?.int, count > 0 else { return nil }
      return "\(layer["path"]?.string ?? "?"): entries that only overlayfs can read: \(count)"
    }
  }

  /// How many restarts within ten minutes are too many.
  private static let manyRestarts = 3

  private static func restarts(_ survival: JSONValue?) -> [String] {
    guard let count = survival?["recentRestarts"]?.int, count >= manyRestarts else { return [] }
    let cause = survival?["cause"]?.string.map { ", the last time after \($0)" } ?? ""
    return ["its worker process was restarted \(count) times within 10 minutes\(cause)"]
  }

  // MARK: - Output

  /// A line, and an indented one for each of several reasons.
  var text: String {
    let start = "\(path.shown.escapingControls): \(state.word)"
    if reasons.count < 2 { return start + reasons.map { ": \($0.escapingControls)" }.joined() }
    return ([start + ":"] + reasons.map { "  \($0.escapingControls)" }).joined(separator: "\n")
  }

  func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("mountPoint", path.shown)
      json.member("encodedMountPoint", PercentCoding.encoded(path: path))
      json.member("state", state.word)
      json.name("reasons")
      json.strings(reasons)
    }
  }
}
