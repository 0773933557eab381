import FoundationEssentials
import Posix
import TestSupport

/// An element of the output of `bundlefs list --json`.
struct ListedMount: Decodable {
  struct Layer: Decodable {
    let role: String
    let path: String
  }
  struct Owner: Decodable {
    let id: Int32
    let command: String
  }

  let mountPoint: String
  let state: String
  let reason: String?
  let user: Int
  let main: String
  let layers: [Layer]?
  let process: Owner?

  /// The mounts at or below a path.
  /// - Parameter user: the user that runs the command; nil for this one.
  static func list(
    below path: ByteString, program: ByteString, user: UInt32? = nil
  ) throws -> [ListedMount] {
    let command = Command([program, "list", "--json"])
    let outcome = try (user.map { command.asUser($0) } ?? command).check()
    let all = try JSONDecoder().decode([ListedMount].self, from: Data(outcome.output))
    return all.filter { $0.mountPoint == path.text || $0.mountPoint.hasPrefix(path.text + "/") }
  }
}
