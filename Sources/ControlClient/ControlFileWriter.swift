import Posix
import Routing

/// Writes commands to a control file one by one, and finds the result of each.
public struct ControlFileWriter: ~Copyable {
  private let file: ControlFile
  /// The sequence number of the newest result that was read; nil if the user may not read the file.
  private var lastSequence: UInt64?

  /// Opens the control file, for writing only if the user may not read it.
  /// - Throws: as ``ControlFileLocation/open(_:)`` and ``ControlFile/results()``.
  public init(_ location: ControlFileLocation) throws(Errno) {
    do throws(Errno) {
      let file = try location.open([.readWrite])
      lastSequence = try file.results().last?.sequence ?? 0
      self.file = file
    } catch {
      guard error == .permissionDenied else { throw error }
      lastSequence = nil
      file = try location.open([.write])
    }
  }

  /// Whether the results of commands can be read.
  public var readsResults: Bool { lastSequence != nil }

  /// The outcome of a command.
  public struct Outcome: Sendable {
    /// The command's result; nil if the command has none or the ring of results has dropped it.
    public let result: ResultLine?
    /// The errno value with which the daemon rejected the command.
    public let error: Errno?
  }

  /// Writes a command.
  /// - Parameter url: the URL that the command ends with, by which the result is recognised.
  /// - Throws: ENOTCONN if the daemon is dead; the errors of reading the results.
  public mutating func write(_ command: [UInt8], url: [UInt8]) throws(Errno) -> Outcome {
    var rejection: Errno?
    do throws(Errno) { try file.write(command) } catch {
      if error == .socketNotConnected { throw error }
      rejection = error
    }
    guard let previous = lastSequence else { return Outcome(result: nil, error: rejection) }
    let results = try file.results().filter { $0.sequence > previous }
    lastSequence = results.last?.sequence ?? lastSequence
    // The result of a malformed command shows the whole line as its URL.
    return Outcome(
      result: results.first { $0.isResult(of: url) || $0.isResult(of: command) }, error: rejection)
  }
}
