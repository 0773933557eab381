import Routing

/// A mount's metrics, read from what `bundlefs status --json` prints.
///
/// What the kernel answers from its caches reaches no daemon, so that it cannot be counted.
struct MountMetrics {
  typealias Sample = OpenMetrics.Sample
  typealias Label = OpenMetrics.Label

  let health: HealthReport
  /// nil for a mount that does not answer.
  let status: JSONValue?

  init(_ asked: Result<AskedMount, NoMount>) {
    health = HealthReport(asked)
    status = (try? asked.get())?.inspection.status
  }

  init(health: HealthReport, status: JSONValue?) { (self.health, self.status) = (health, status) }

  private func sample(_ value: Int, _ labels: [Label] = []) -> Sample {
    Sample(labels: [Label(name: "mountpoint", value: health.path.shown)] + labels, value: value)
  }

  private func number(_ path: [String]) -> [Sample] {
    guard let value = path.reduce(status, { $0?[$1] })?.int else { return [] }
    return [sample(value)]
  }

  /// One sample for each member of an object.
  private func members(_ name: String) -> [Sample] {
    guard case .object(let members)? = status?[name] else { return [] }
    return members.sorted { $0.key < $1.key }.compactMap { name, value in
      value.int.map { sample($0, [Label(name: "kind", value: name.lowercased())]) }
    }
  }

  /// One sample for each layer that has a value.
  private func layers(_ value: (JSONValue) -> Int?) -> [Sample] {
    guard case .array(let layers)? = status?["layers"] else { return [] }
    return layers.compactMap { layer in
      value(layer).map { sample($0, [Label(name: "layer", value: layer["path"]?.string ?? "")]) }
    }
  }

  private var durations: OpenMetrics.Histogram? {
    guard let latencies = status?["latencies"], case .array(let bounds)? = latencies["bounds"],
      case .array(let counts)? = latencies["counts"], let sum = latencies["microseconds"]?.int
    else { return nil }
    return OpenMetrics.Histogram(
      labels: [Label(name: "mountpoint", value: health.path.shown)], bounds: bounds.compactMap(\.int),
      counts: counts.compactMap(\.int), microseconds: sum)
  }

  /// The text for some mounts.
  static func text(of mounts: [MountMetrics]) -> String {
    var metrics = OpenMetrics()
    for family in families {
      metrics.add(
        "bundlefs_" + family.name, family.kind, unit: family.unit, help: family.help,
        mounts.flatMap(family.samples))
    }
    metrics.add(
      "bundlefs_request_duration_seconds",
      help:
        "how long requests of the kernel took, without FORGET; those that other threads answer, until they have them",
      mounts.compactMap(\.durations))
    return metrics.text
  }

  // MARK: - Families

  private struct Family: Sendable {
    let name: String
    let kind: OpenMetrics.Kind
    var unit: String?
    let help: String
    let samples: @Sendable (MountMetrics) -> [Sample]

    init(
      _ name: String, _ kind: OpenMetrics.Kind, unit: String? = nil, _ help: String,
      _ samples: @escaping @Sendable (MountMetrics) -> [Sample]
    ) {
      (self.name, self.kind, self.unit, self.help, self.samples) = (name, kind, unit, help, samples)
    }

    /// One number of the status, by its path.
    init(
      _ name: String, _ kind: OpenMetrics.Kind, unit: String? = nil, _ help: String, at path: String...
    ) {
      self.init(name, kind, unit: unit, help) { $0.number(path) }
    }
  }

  private static let families = state + activity + memory

  private static let state = [
    Family("health", .gauge, "0 healthy, 1 degraded, 2 dead, as the exit status of 'bundlefs health'") {
      [$0.sample(Int($0.health.state.rawValue))]
    },
    Family("mount", .info, "the version of the program that serves the mount") { mount in
      guard let version = mount.status?["version"]?.string else { return [] }
      return [mount.sample(1, [Label(name: "version", value: version)])]
    },
    Family("layer_caching", .gauge, "whether a layer is cached as long as it is unchanged, or for 1 s only") {
      $0.layers { $0["caching"] == .boolean(true) ? 1 : 0 }
    },
    Family(
      "layer_unresponsive_seconds", .gauge, unit: "seconds",
      "for how long a layer has not answered; 0 if it does"
    ) { $0.layers { $0["unresponsive"]?.int ?? 0 } },
    Family("restarts", .counter, "worker processes that have died", at: "survival", "restarts"),
    Family("hangs", .counter, "worker processes that were killed since they hung", at: "survival", "hangs"),
    Family("upgrades", .counter, "upgrades of the serving program", at: "survival", "upgrades"),
    Family(
      "failed_upgrades", .counter, "programs that could not take over", at: "survival", "failedUpgrades"),
  ]

  private static let activity = [
    Family("requests", .counter, "requests of the kernel that its caches did not answer") {
      $0.members("requests")
    },
    Family("invalidations", .counter, "what the kernel has dropped from its caches on request") {
      $0.members("invalidations")
    },
    Family(
      "read_ahead", .counter, "files whose content was in the page cache before the first READ",
      at: "readAhead"),
    Family(
      "listed_ahead", .counter, "directories that were listed before the first READDIR", at: "listedAhead"),
    Family(
      "event_queue_overflows", .counter, "overflows of the kernel's queue of inotify events", at: "overflows"),
    Family("announced_events", .counter, "events sent to watchers of the mount", at: "announce", "events"),
    Family("coalesced_events", .counter, "events that were merged with others", at: "announce", "coalesced"),
    Family("dropped_events", .counter, "events that could not be sent", at: "announce", "dropped"),
    Family("results", .counter, "results of URLs since the mount", at: "results"),
    Family(
      "archive_cache_hits", .counter, "reads of archives that did not wait for a decoder", at: "contents",
      "hits"),
    Family(
      "archive_cache_misses", .counter, "reads of archives that waited for a decoder", at: "contents",
      "misses"),
    Family(
      "passthrough_opened", .counter, "files opened for the kernel to read without the daemon",
      at: "passthrough", "opened"),
    Family(
      "passthrough_refused", .counter, "files that could not be passed through", at: "passthrough", "refused"),
  ]

  private static let memory = [
    Family("nodes", .gauge, "files and directories that the kernel knows", at: "nodes"),
    Family("descriptors", .gauge, "descriptors of layers that are open", at: "descriptors"),
    Family("watches", .gauge, "inotify watches", at: "watches"),
    Family("routes", .gauge, "registered routes", at: "routes"),
    Family(
      "archive_cache_bytes", .gauge, unit: "bytes", "memory that decoded entries of archives use",
      at: "contents", "bytes"),
    Family(
      "archive_cache_limit_bytes", .gauge, unit: "bytes", "the most that they may use", at: "contents",
      "budget"),
  ]
}
