import Posix
import TestSupport
import Testing

/// The maximum age in seconds of replies where nothing is watched, with some slack.
private let staleness = 1.5

extension Mount {
  /// Reads everything twice, so that the kernel caches it where it may.
  func warmCaches() throws {
    for _ in 0..<2 { try walk() }
  }

  /// Lists, stats and reads everything once.
  fileprivate func walk() throws { try walk(point) }

  private func walk(_ path: ByteString) throws {
    for entry in try path.list() {
      if try (path / entry.name).status().kind == .directory {
        try walk(path / entry.name)
      } else {
        _ = try? (path / entry.name).read()
      }
    }
  }
}

/// Expects the condition to hold before cached replies expire.
func expectEventually(location: SourceLocation = #_sourceLocation, _ condition: () throws -> Bool)
  throws
{
  let start = Clock.now
  var error: String?
  let isTrue = eventually(within: staleness) {
    do {
      error = nil
      return try condition()
    } catch let caught {
      // The entry may not exist yet.
      error = "\(caught)"
      return false
    }
  }
  #expect(isTrue, "stale after \(Clock.now - start) s; \(error ?? "")", sourceLocation: location)
}

/// Expects that files which appear, change and vanish in a layer do so in the mount before cached replies expire.
func expectChangesSeen(
  _ mount: Mount, in layer: ByteString, location: SourceLocation = #_sourceLocation
) throws {
  let seen = mount.point / "of-the-test"
  for round in 0..<2 {
    try expectErrno(.noSuchFileOrDirectory, location: location) { _ = try seen.status() }
    for text in ["one \(round)\n", "the second \(round)\n"] {
      try (layer / "of-the-test").write(text)
      try expectEventually(location: location) {
        try seen.readText() == text && mount.point.names().contains("of-the-test")
      }
    }
    try (layer / "of-the-test").remove()
    try expectEventually(location: location) {
      try !seen.exists && !mount.point.names().contains("of-the-test")
    }
  }
}

/// Expects the status to list the layer, or a part of it, as not cached, with a reason.
func expectUncached(
  _ mount: Mount, of layer: ByteString, location: SourceLocation = #_sourceLocation
) throws {
  guard Mount.hasControl else { return }
  var report = try mount.report()
  let isReported = try eventually(within: 5) {
    report = try mount.report()
    return report.layers.contains { $0.path == layer.text && !$0.caching && !($0.reason ?? "").isEmpty }
      || report.fallbacks.contains { $0.layer == layer.text && !$0.reason.isEmpty }
  }
  #expect(isReported, "\(report.uncachedParts)", sourceLocation: location)
}

/// Expects coherent caching to resume as the mount is used.
func expectRecovery(_ mount: Mount, location: SourceLocation = #_sourceLocation) throws {
  guard Mount.hasControl else { return }
  var uncachedParts: [String] = []
  let hasRecovered = try eventually(within: 20) {
    try mount.walk()
    uncachedParts = try mount.report().uncachedParts
    return uncachedParts.isEmpty
  }
  #expect(hasRecovered, "\(uncachedParts)", sourceLocation: location)
}

/// Expects that a second walk causes no requests.
func expectNoRequests(_ mount: Mount, location: SourceLocation = #_sourceLocation) throws {
  guard Mount.hasControl else { return }
  var growth: [String] = []
  // Replies with a short timeout are requested again once they expire, and the kernel may reclaim pages.
  let isQuiet = try eventually(within: 10) {
    try mount.barrier()
    try mount.warmCaches()
    let before = RequestCounts(try mount.report())
    // Longer than the short timeout.
    Clock.sleep(1.2)
    try mount.warmCaches()
    growth = RequestCounts(try mount.report()).growth(since: before)
    return growth == []
  }
  #expect(isQuiet, "\(growth)", sourceLocation: location)
}
