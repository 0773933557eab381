import Posix
import Routing

/// Writes commands to a control file, and finds the result of each.
public struct ControlFileWriter: ~Copyable {
  /// A command of one line, without its newline.
  public struct Command: Sendable {
    /// The line.
    public let line: [UInt8]
    /// The URL that the line ends with, by which the result is recognised.
    public let url: [UInt8]

    /// A command.
    public init(_ line: [UInt8], url: [UInt8]) {
      self.line = line
      self.url = url
    }

    func isCommand(of result: ResultLine) -> Bool {
      // The result of a malformed command shows the whole line as its URL.
      result.isResult(of: url) || result.isResult(of: line)
    }
  }

  /// The outcome of a command.
  public struct Outcome: Sendable {
    /// The command's result; nil if the command has none or the ring of results has dropped it.
    public let result: ResultLine?
    /// The errno value with which the daemon rejected the command, if it was the first of a write.
    public let error: Errno?
  }

  private let file: ControlFileHandle
  /// Reads the results; nil if the user may not read the file.
  private var reader: ResultReader?

  /// Opens the control file, for writing only if the user may not read it.
  /// - Throws: as ``ControlFileLocation/open(_:)``.
  public init(_ location: ControlFileLocation) throws(Errno) {
    do throws(Errno) {
      let file = try location.open([.readWrite])
      reader = ResultReader(after: try file.newestSequence())
      self.file = file
    } catch {
      guard error == .permissionDenied else { throw error }
      reader = nil
      file = try location.open([.write])
    }
  }

  /// Whether the results of commands can be read.
  public var readsResults: Bool { reader != nil }

  /// Writes a command.
  /// - Parameter url: the URL that the command ends with.
  /// - Throws: ENOTCONN if the daemon is dead; the errors of reading the results.
  public mutating func write(_ command: [UInt8], url: [UInt8]) throws(Errno) -> Outcome {
    try write([Command(command, url: url)])[0]
  }

  /// Writes commands in order, several in one call.
  ///
  /// Only commands that cannot change the outcome of others belong together, such as URLs. All of them together should
  /// fit into a WRITE request, 128 KiB.
  /// - Throws: as ``write(_:url:)``.
  public mutating func write(_ commands: [Command]) throws(Errno) -> [Outcome] {
    var outcomes: [Outcome] = []
    while outcomes.count < commands.count {
      // Without the results, only the errno value of a write says what became of its line.
      let rest = commands[outcomes.count...].prefix(readsResults ? .max : 1)
      do throws(Errno) {
        let count = try file.writeLines(rest.flatMap { $0.line + [UInt8(ascii: "\n")] })
        outcomes += Self.outcomes(of: rest, written: count, try newResults())
      } catch {
        if error == .socketNotConnected { throw error }
        let results = try newResults()
        let result = rest.first.flatMap { command in results.first { command.isCommand(of: $0) } }
        outcomes.append(Outcome(result: result, error: error))
      }
    }
    return outcomes
  }

  /// The outcomes of the commands within the bytes that a write took, and of the one that ended it; at least one.
  static func outcomes(
    of commands: ArraySlice<Command>, written count: Int, _ results: [ResultLine]
  ) -> [Outcome] {
    var results = results[...]
    var outcomes: [Outcome] = []
    var end = 0
    for command in commands {
      end += command.line.count + 1
      let index = results.firstIndex { command.isCommand(of: $0) }
      // A line that the daemon has not run is written again.
      if end > count, index == nil, !outcomes.isEmpty { break }
      outcomes.append(Outcome(result: index.map { results[$0] }, error: nil))
      if let index { results = results[(index + 1)...] }
      if end > count { break }
    }
    return outcomes
  }

  private mutating func newResults() throws(Errno) -> [ResultLine] {
    guard var reader else { return [] }
    var results: [ResultLine] = []
    var hasMore = true
    while hasMore {
      let batch = try reader.read(file)
      results += batch.results
      hasMore = batch.hasMore
    }
    self.reader = reader
    return results
  }
}
