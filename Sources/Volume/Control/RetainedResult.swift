import Posix
import Routing

/// What became of a line.
enum LineOutcome {
  case posted(FoundRoute, listeners: Int)
  case matched(FoundRoute)
  case resolved(ResolvedResource)
  case applied(RouteOverlaps = .none)
}

/// A result of the control file: its line, or what the line is made of when it is read. In a long write, few lines are.
struct RetainedResult {
  enum Form {
    /// The text is the result's line, with its newline.
    case line
    /// The text is that of the URL or command.
    case applied
    case posted(FoundRoute, listeners: Int)
    case matched(FoundRoute)
  }

  let sequence: UInt64
  let time: TimeSpec
  private(set) var form: Form
  private(set) var text: [UInt8]

  /// - Parameter command: the URL or command.
  private init(_ sequence: UInt64, _ time: TimeSpec, of command: [UInt8], as form: Form) {
    self.sequence = sequence
    self.time = time
    self.form = form
    text = command
  }

  /// A result whose line there is already.
  init(_ sequence: UInt64, line: [UInt8]) {
    self.init(sequence, TimeSpec(seconds: 0, nanoseconds: 0), of: line, as: .line)
  }

  init(_ sequence: UInt64, _ time: TimeSpec, of command: [UInt8], _ outcome: LineOutcome) {
    switch outcome {
    case .posted(let route, let listeners):
      self.init(sequence, time, of: command, as: .posted(route, listeners: listeners))
    case .matched(let route): self.init(sequence, time, of: command, as: .matched(route))
    case .applied(let overlaps) where overlaps.isEmpty: self.init(sequence, time, of: command, as: .applied)
    case .applied(let overlaps):
      self.init(sequence, line: Self.line(sequence, time, command, .applied(overlaps: overlaps)))
    case .resolved(let resource):
      self.init(sequence, line: Self.line(sequence, time, command, .resolved(resource)))
    }
  }

  init(_ sequence: UInt64, _ time: TimeSpec, of command: [UInt8], _ error: RoutingError) {
    self.init(sequence, line: Self.line(sequence, time, command, .rejected(error)))
  }

  /// Makes the line, which has at least as many bytes as the text before.
  mutating func makeLine() {
    if case .line = form { return }
    text = Self.line(sequence, time, text, outcome)
    form = .line
  }

  /// What the line says.
  private var outcome: RouteResult.Outcome {
    do throws(RoutingError) {
      switch form {
      case .line, .applied: return .applied()
      case .posted(let route, let listeners):
        return .posted(route.match(try RouteURL(text)), listeners: listeners)
      case .matched(let route): return .matched(route.match(try RouteURL(text)))
      }
    } catch {
      return .rejected(error)
    }
  }

  private static func line(
    _ sequence: UInt64, _ time: TimeSpec, _ command: [UInt8], _ outcome: RouteResult.Outcome
  ) -> [UInt8] {
    let time = Timestamp(seconds: time.seconds, nanoseconds: Int64(time.nanoseconds))
    return RouteResult(sequence: sequence, time: time, url: command, outcome: outcome).json + [
      UInt8(ascii: "\n")
    ]
  }
}
