import FoundationEssentials
import Posix
import TestSupport
import Testing

/// A result as the control file tells it, read by somebody else's reader of JSON.
struct RoutedResult: Decodable {
  /// What a key is bound to.
  enum Value: Decodable, Equatable, CustomStringConvertible {
    case text(String)
    case number(Double)

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let text = try? container.decode(String.self) {
        self = .text(text)
      } else {
        self = .number(try container.decode(Double.self))
      }
    }

    var description: String {
      switch self {
      case .text(let text): text
      case .number(let number): "\(number)"
      }
    }
  }

  var sequence: UInt64
  var time: String
  var url: String
  var outcome: String
  var notification: String?
  var userInfo: [String: Value]?
  var query: String?
  var fragment: String?
  var overlaps: [String]?
  var errno: String?
  var error: String?

  /// Reads a line.
  init(_ line: String) throws {
    do {
      self = try JSONDecoder().decode(RoutedResult.self, from: Data(line.utf8))
    } catch {
      throw TestFailure("no result: \(line.prefix(300)): \(error)")
    }
  }

  /// What it came to, in short: the outcome, with the notification's name or the errno.
  var verdict: String { ([outcome] + [notification, errno].compactMap { $0 }).joined(separator: " ") }
}

/// The control file's text, taken apart.
struct RoutesText {
  /// The lines of the table, which come first.
  let routes: [String]
  /// The lines after them, which are results.
  let lines: [String]
  let results: [RoutedResult]

  /// Reads the text.
  /// - Throws: unless it is whole: routes, then results with numbers that have no gaps, then nothing.
  init(_ bytes: [UInt8]) throws {
    guard let text = String(validating: bytes, as: UTF8.self) else { throw TestFailure("no UTF-8") }
    guard text.isEmpty || text.hasSuffix("\n") else { throw TestFailure("cut off: …\(text.suffix(100))") }
    let all = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
    routes = Array(all.prefix { $0.hasPrefix("route ") })
    lines = Array(all.dropFirst(routes.count))
    results = try lines.map { try RoutedResult($0) }
    for (result, next) in zip(results, results.dropFirst()) where next.sequence != result.sequence + 1 {
      throw TestFailure("result \(next.sequence) follows \(result.sequence)")
    }
  }

  /// What the results came to, in order.
  var verdicts: [String] { results.map(\.verdict) }
}

extension Mount {
  /// What the control file reads as.
  func routesText() throws -> RoutesText { try RoutesText(try routes.read()) }

  /// The last result.
  func lastResult() throws -> RoutedResult {
    guard let last = try routesText().results.last else { throw TestFailure("there is no result") }
    return last
  }

  /// Runs a script of bash's in which `$R` is the control file, `$M` the mount and `$B` the command.
  func bash(_ script: String, user: UInt32? = nil) throws -> Outcome {
    let command = Command.shell("R=$1 M=$2 B=$3\n" + script, routes, point, try Binary.underTest())
    var localized = user.map { command.asUser($0) } ?? command
    localized.environment["LC_ALL"] = "C"
    return try localized.run(timeout: 30)
  }

  /// Runs a script of Python's with the control file's path in `path`, and wants it to print these lines.
  func expectPython(
    _ script: String, prints lines: String..., location: SourceLocation = #_sourceLocation
  ) throws {
    let outcome = try Command("python3", "-c", "import sys; path = sys.argv[1]\n" + script, routes.text)
      .run(timeout: 30)
    #expect(outcome.errorText == "", sourceLocation: location)
    #expect(outcome.outputText.split(separator: "\n").map(String.init) == lines, sourceLocation: location)
  }

  /// Starts `bundlefs listen`, and waits until it listens.
  func listen(_ arguments: ByteString...) throws -> Child {
    let listener = try Child(Command([try Binary.underTest(), "listen", point] + arguments))
    let process = ByteString("/proc/\(listener.pid)")
    // It waits in poll(2) once it has printed what there was.
    let isWaiting = try eventually(within: 20) {
      try listener.status() != nil || (process / "wchan").readText().contains("poll")
    }
    guard isWaiting, listener.status() == nil else {
      throw TestFailure("bundlefs listen does not wait: \(listener.errorText)")
    }
    return listener
  }
}

extension Child {
  /// Waits for so many lines on its standard output.
  func lines(_ count: Int, within seconds: Double = 20) throws -> [String] {
    _ = eventually(within: seconds) { self.outputText.split(separator: "\n").count >= count }
    let lines = outputText.split(separator: "\n").map(String.init)
    guard lines.count >= count else {
      throw TestFailure("\(lines.count) lines, not \(count): \(outputText.suffix(300)); \(errorText)")
    }
    return lines
  }
}
