import Posix
import Routing
import TestSupport

extension Mount {
  /// Replaces the substitutions, top first; returns when the new stack is visible.
  func setLayers(_ substitutions: [ByteString]) throws {
    let parameters = substitutions.map { "substitution=" + PercentCoding.encoded(path: $0.bytes) }
    let query = parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&")
    try writeControl("bundlefs:///layers\(query)\n")
  }

  /// The paths of the present layers, top first, MAIN last.
  func layers() throws -> [String] { try report().layers.map(\.path) }
}
