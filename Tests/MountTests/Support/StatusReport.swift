/// The output of `bundlefs status --json`.
struct StatusReport: Decodable, Sendable {
  struct Layer: Decodable, Sendable {
    var path: String
    var caching: Bool
    var absent: Bool?
    var reason: String?
    var unresponsive: Int?
  }

  struct UncachedReason: Decodable, Sendable {
    var layer: String
    var path: String
    var reason: String
  }

  struct Announcements: Decodable, Sendable {
    var on: Bool
    var reason: String?
    var events: Int
    var coalesced: Int
    var dropped: Int
    var lastDrop: String?
  }

  struct Invalidations: Decodable, Sendable {
    var entries: Int
    var attributes: Int
    var contents: Int
  }

  var version: String
  var options: [String: String]
  var log: String
  var cache: String
  var layers: [Layer]
  var watches: Int
  var nodes: Int
  var descriptors: Int
  var requests: [String: Int]
  var invalidations: Invalidations
  var readAhead: Int
  var listedAhead: Int
  var announce: Announcements
  var fallbacks: [UncachedReason]
  var passthrough: Passthrough?
  var survival: Survival?

  struct Survival: Decodable, Sendable {
    var restarts: Int
    var cause: String?
    var upgrades: Int
    var failedUpgrades: Int
    var hangs: Int
  }

  struct Passthrough: Decodable, Sendable {
    var smallest: Int?
    var open: Int
    var opened: Int
    var refused: Int
    var reason: String?
  }

  /// Layers and parts of layers without coherent caching, with the reasons.
  var uncachedParts: [String] {
    layers.filter { !$0.caching }.map { "\($0.path): \($0.reason ?? "no reason given")" }
      + fallbacks.map { "\($0.layer)/\($0.path): \($0.reason)" }
  }
}

/// The number of requests by kind.
struct RequestCounts: Sendable {
  /// Requests caused by reading the status or by the kernel itself.
  private static let ignored: Set<String> = ["IOCTL", "STATFS", "FORGET", "BATCH_FORGET"]
  private let counts: [String: Int]

  init(_ report: StatusReport) { counts = report.requests }

  subscript(kind: String) -> Int { counts[kind] ?? 0 }

  /// The counters that have grown, as lines such as `READ +3`.
  func growth(since earlier: RequestCounts) -> [String] {
    counts.keys.sorted().filter { !Self.ignored.contains($0) }.compactMap { kind in
      let more = self[kind] - earlier[kind]
      // Reading the status may open and close the root.
      if more <= 2 && ["OPENDIR", "RELEASEDIR"].contains(kind) { return nil }
      return more == 0 ? nil : "\(kind) +\(more)"
    }
  }
}
