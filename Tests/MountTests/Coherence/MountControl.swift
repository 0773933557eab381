import FoundationEssentials
import Posix
import TestSupport

/// What the tests ask of a mount through its control file and the command.
extension Mount {
  /// Whether the program under test has a control file; one that does not caches nothing either.
  static let hasControl = Binary.variable("BUNDLEFS_NO_BARRIER") == nil

  /// What the mount itself adds to its root.
  static let ownNames: Set<ByteString> = [".routes"]

  /// The names that the root has from the layers, sorted.
  func names() throws -> [ByteString] { try point.names().filter { !Self.ownNames.contains($0) } }

  /// Returns when every change to a layer that is finished now is visible.
  func barrier() throws {
    guard Self.hasControl else { return }
    try say("bundlefs:///sync\n")
  }

  /// Runs one of the subcommands on this mount.
  @discardableResult
  func command(_ name: ByteString, _ arguments: ByteString..., timeout: Double = 30) throws -> Outcome {
    let words = [try Binary.underTest(), name, point] + arguments
    return try Command(words).check(timeout: timeout)
  }

  /// What the daemon tells of itself.
  func report() throws -> StatusReport {
    let outcome = try command("status", "--json")
    do {
      return try JSONDecoder().decode(StatusReport.self, from: Data(outcome.output))
    } catch {
      throw TestFailure("bundlefs status --json: \(error): \(outcome.outputText)")
    }
  }
}

extension Mount {
  /// The requests that something costs again and again. Memory that the kernel took back meanwhile is no fault of
  /// the mount's: then once more. A request that belongs to an access would come again each time.
  func lastingRequests(of body: () throws -> Void) throws -> [String] {
    var growth: [String] = []
    for _ in 0..<4 {
      let before = RequestCounts(try report())
      try body()
      growth = RequestCounts(try report()).growth(since: before)
      if growth.isEmpty { break }
    }
    return growth
  }
}

/// What `bundlefs status --json` prints.
struct StatusReport: Decodable, Sendable {
  struct Layer: Decodable, Sendable {
    var path: String
    var caching: Bool
    var reason: String?
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

  struct Passthrough: Decodable, Sendable {
    var smallest: Int?
    var open: Int
    var opened: Int
    var refused: Int
    var reason: String?
  }

  /// What says that something is not cached for ever: layers and parts of layers, with the reasons.
  var complaints: [String] {
    layers.filter { !$0.caching }.map { "\($0.path): \($0.reason ?? "no reason given")" }
      + fallbacks.map { "\($0.layer)/\($0.path): \($0.reason)" }
  }
}

/// How many requests of each kind came.
struct RequestCounts: Sendable {
  /// What asking for the status costs, and what the kernel does by itself.
  private static let leftAside: Set<String> = ["IOCTL", "STATFS", "FORGET", "BATCH_FORGET"]
  private let counts: [String: Int]

  init(_ report: StatusReport) { counts = report.requests }

  subscript(kind: String) -> Int { counts[kind] ?? 0 }

  /// By how much each counter has grown, if it has: a line such as `READ +3`.
  func growth(since earlier: RequestCounts) -> [String] {
    counts.keys.sorted().filter { !Self.leftAside.contains($0) }.compactMap { kind in
      let more = self[kind] - earlier[kind]
      // The status may open and close the root itself.
      if more <= 2 && ["OPENDIR", "RELEASEDIR"].contains(kind) { return nil }
      return more == 0 ? nil : "\(kind) +\(more)"
    }
  }
}
