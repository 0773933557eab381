import FoundationEssentials
import Posix
import TestSupport

/// A mount's control file and subcommands.
extension Mount {
  /// Whether the program under test has a control file; one without caches nothing.
  static let hasControl = Binary.variable("BUNDLEFS_NO_BARRIER") == nil

  /// The sorted names in the root.
  func names() throws -> [ByteString] { try point.names() }

  /// Waits until every completed change to a layer is visible.
  func barrier() throws {
    guard Self.hasControl else { return }
    try writeControl("bundlefs:///sync\n")
  }

  /// Runs a subcommand on this mount.
  @discardableResult
  func command(_ name: ByteString, _ arguments: ByteString..., timeout: Double = 30) throws -> Outcome {
    let words = [try Binary.underTest(), name, point] + arguments
    return try Command(words).check(timeout: timeout)
  }

  /// Runs `bundlefs status --json`.
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
  /// The requests that the body causes in each of four runs. A single run may cause requests because the kernel
  /// reclaimed cached memory; a request that an access needs comes every time.
  func repeatedRequests(of body: () throws -> Void) throws -> [String] {
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
