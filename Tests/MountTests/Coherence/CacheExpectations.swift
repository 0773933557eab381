import Posix
import TestSupport
import Testing

/// How old an answer may be where nothing is watched, in seconds.
private let staleness = 1.5

extension Mount {
  /// Asks for everything, twice, so that it is cached if it may be.
  func look() throws {
    for _ in 0..<2 { try walk() }
  }

  /// Asks for everything once.
  fileprivate func walk() throws { try walk(point) }

  private func walk(_ path: ByteString) throws {
    for entry in try path.list() where entry.name != ".routes" {
      if try (path / entry.name).status().kind == .directory {
        try walk(path / entry.name)
      } else {
        _ = try? (path / entry.name).read()
      }
    }
  }
}

/// Comes true before an answer may be too old.
func expectSoon(location: SourceLocation = #_sourceLocation, _ condition: () throws -> Bool)
  throws
{
  let start = Clock.now
  var error: String?
  let isTrue = eventually(within: staleness) {
    do {
      error = nil
      return try condition()
    } catch let caught {
      // What is asked for may not be there yet.
      error = "\(caught)"
      return false
    }
  }
  #expect(isTrue, "stale after \(Clock.now - start) s; \(error ?? "")", sourceLocation: location)
}

/// Files that come, change and go in the layer are seen before an answer may be too old.
func expectChangesSeen(
  _ mount: Mount, in layer: ByteString, location: SourceLocation = #_sourceLocation
) throws {
  let seen = mount.point / "of-the-test"
  for round in 0..<2 {
    try expectErrno(.noSuchFileOrDirectory, location: location) { _ = try seen.status() }
    for text in ["one \(round)\n", "the second \(round)\n"] {
      try (layer / "of-the-test").write(text)
      try expectSoon(location: location) {
        try seen.readText() == text && mount.point.names().contains("of-the-test")
      }
    }
    try (layer / "of-the-test").remove()
    try expectSoon(location: location) {
      try !seen.exists && !mount.point.names().contains("of-the-test")
    }
  }
}

/// The status names the layer and says why.
func expectComplaint(
  _ mount: Mount, of layer: ByteString, location: SourceLocation = #_sourceLocation
) throws {
  guard Mount.hasControl else { return }
  var report = try mount.report()
  let hasComplaint = try eventually(within: 5) {
    report = try mount.report()
    return report.layers.contains { $0.path == layer.text && !$0.caching && !($0.reason ?? "").isEmpty }
      || report.fallbacks.contains { $0.layer == layer.text && !$0.reason.isEmpty }
  }
  #expect(hasComplaint, "\(report.complaints)", sourceLocation: location)
}

/// Full caching comes back by itself, as the mount is used.
func expectRecovery(_ mount: Mount, location: SourceLocation = #_sourceLocation) throws {
  guard Mount.hasControl else { return }
  var complaints: [String] = []
  let isWell = try eventually(within: 20) {
    try mount.walk()
    complaints = try mount.report().complaints
    return complaints.isEmpty
  }
  #expect(isWell, "\(complaints)", sourceLocation: location)
}

/// What has been asked for once is not asked again.
func expectQuiet(_ mount: Mount, location: SourceLocation = #_sourceLocation) throws {
  guard Mount.hasControl else { return }
  var growth: [String] = []
  // What was told with a short timeout before is asked once more when that is over, and the kernel may
  // drop a page of its own accord.
  let isQuiet = try eventually(within: 10) {
    try mount.barrier()
    try mount.look()
    let before = RequestCounts(try mount.report())
    // Longer than short timeouts last.
    Clock.sleep(1.2)
    try mount.look()
    growth = RequestCounts(try mount.report()).growth(since: before)
    return growth == []
  }
  #expect(isQuiet, "\(growth)", sourceLocation: location)
}
