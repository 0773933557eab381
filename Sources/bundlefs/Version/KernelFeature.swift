/// What users have of a kernel since a release, as the guide "Platforms" says in full.
struct KernelFeature: Sendable {
  let since: KernelRelease
  let name: String

  /// The latest first.
  static let all = [
    KernelFeature(since: KernelRelease(major: 6, minor: 9), name: "survive, upgrade, layers, passthrough"),
    KernelFeature(since: KernelRelease(major: 6, minor: 2), name: "mounts inside a replaced directory"),
    KernelFeature(since: KernelRelease(major: 5, minor: 12), name: "layers without the mounts inside them"),
    KernelFeature(since: KernelRelease(major: 5, minor: 8), name: "events of changed attributes"),
  ]

  /// One line on a kernel, such as `Linux 6.1.0: without survive, upgrade, layers, passthrough (6.9)`.
  static func line(_ name: String) -> String {
    guard let release = KernelRelease(name) else { return "Linux \(name)" }
    let missing = all.filter { release < $0.since }.map { "\($0.name) (\($0.since))" }
    return "Linux \(name): "
      + (missing.isEmpty ? "all features" : "without " + missing.joined(separator: ", "))
  }
}
