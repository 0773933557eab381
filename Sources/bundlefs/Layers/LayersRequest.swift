import ControlClient
import Posix
import RemoteFiles
import Routing

/// The command of the control file that changes the layers of a mount: `bundlefs:///layers?substitution=PATH&…`.
struct LayersRequest {
  /// Absolute paths, top first.
  let substitutions: [[UInt8]]

  var line: String { line(substitutions) }

  private func line(_ substitutions: [[UInt8]]) -> String {
    let parameters = substitutions.map { "substitution=" + PercentCoding.encoded(path: $0) }
    return "bundlefs:///layers" + (parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&"))
  }

  /// Writes the command. When this returns, no program sees the former layers any more.
  /// - Throws: with the daemon's reason if it refuses; then nothing has changed.
  func send(to mountPoint: MountPoint) throws(Failure) {
    let name = mountPoint.path.shown
    let control = try mountPoint.controlFile()
    // The result has no secrets of URLs.
    let (line, shown) = (Array(line.utf8), Array(line(substitutions.map(RemoteURL.redacted)).utf8))
    let outcome: ControlFileWriter.Outcome
    do throws(Errno) {
      var writer = try ControlFileWriter(control)
      outcome = try writer.write(line, url: shown)
    } catch {
      if error == .readOnlyFileSystem {
        throw .failed("\(name): mounted with 'ro', so its layers cannot be changed; remount it with 'rw'")
      }
      throw .failed("\(control.path.shown): \(error)")
    }
    if outcome.error == nil, outcome.result?.isRejected != true { return }
    throw .failed("\(name): \(outcome.refusal)")
  }
}

extension MountPoint {
  /// Changes the order of the mount's layers. Returns when the new one is visible everywhere.
  /// - Returns: the former substitutions.
  @discardableResult
  func changeLayers(_ change: (inout LayerOrder) throws(Failure) -> Void) throws(Failure) -> [[UInt8]] {
    // Of two commands, the second one changes what the first one has left.
    let lock = MountLock(for: self)
    defer { lock?.release() }
    var order = try MountedLayers(of: self).order
    let former = order.substitutions
    try change(&order)
    try LayersRequest(substitutions: order.substitutions).send(to: self)
    return former
  }
}

extension ControlFileWriter.Outcome {
  /// Why the daemon has rejected a command, in its own words if they can be read.
  fileprivate var refusal: String {
    result.flatMap { JSONValue($0.bytes)?["error"]?.string } ?? reason()
  }
}
