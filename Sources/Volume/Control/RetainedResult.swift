import Containers
import Posix
import Routing

/// What became of a line.
enum LineOutcome {
  case posted(FoundRoute, listeners: Int)
  case matched(FoundRoute)
  case resolved(ResolvedResource)
  case applied(RouteOverlaps = .none)

  /// What the line of its result says.
  func result(of command: [UInt8]) -> RouteResult.Outcome {
    do throws(RoutingError) {
      switch self {
      case .posted(let route, let listeners):
        return .posted(route.match(try RouteURL(command)), listeners: listeners)
      case .matched(let route): return .matched(route.match(try RouteURL(command)))
      case .resolved(let resource): return .resolved(resource)
      case .applied(let overlaps): return .applied(overlaps: overlaps)
      }
    } catch {
      return .rejected(error)
    }
  }
}

/// A result of the control file: its line, or what the line is made of when it is read. In a long write, few lines are.
struct RetainedResult {
  /// What the text is.
  enum Form {
    /// The result's line, with its newline.
    case line
    /// The URL or command, of which the line is made.
    case applied
    case posted(FoundRoute, listeners: Int)
    case matched(FoundRoute)

    /// The form in which a result with an outcome is kept.
    init(_ outcome: LineOutcome) {
      switch outcome {
      case .posted(let route, let listeners): self = .posted(route, listeners: listeners)
      case .matched(let route): self = .matched(route)
      case .applied(let overlaps): self = overlaps.isEmpty ? .applied : .line
      case .resolved: self = .line
      }
    }

    /// The outcome; nil if the line is there.
    fileprivate var outcome: LineOutcome? {
      switch self {
      case .line: nil
      case .applied: .applied()
      case .posted(let route, let listeners): .posted(route, listeners: listeners)
      case .matched(let route): .matched(route)
      }
    }
  }

  private(set) var sequence: UInt64
  private(set) var time: TimeSpec
  private(set) var form: Form
  private(set) var text: [UInt8]

  /// Arrays with more bytes are not used again.
  private static let maxReused = 1024

  init(_ sequence: UInt64, _ time: TimeSpec, _ text: Span<UInt8>, as form: Form) {
    self.sequence = sequence
    self.time = time
    self.form = form
    self.text = Array(text)
  }

  /// Becomes another result, in the same memory.
  mutating func become(_ sequence: UInt64, _ time: TimeSpec, _ text: Span<UInt8>, as form: Form) {
    if self.text.capacity < text.count || self.text.capacity > Self.maxReused {
      self = RetainedResult(sequence, time, text, as: form)
      return
    }
    self.sequence = sequence
    self.time = time
    self.form = form
    self.text.removeAll(keepingCapacity: true)
    text.withUnsafeBufferPointer { self.text.append(contentsOf: $0) }
  }

  mutating func removeText() { text = [] }

  /// Makes the line, which has at least as many bytes as the text before.
  mutating func makeLine() {
    guard let outcome = form.outcome else { return }
    text = Self.line(sequence, time, text, outcome.result(of: text))
    form = .line
  }

  static func line(
    _ sequence: UInt64, _ time: TimeSpec, _ command: [UInt8], _ outcome: RouteResult.Outcome
  ) -> [UInt8] {
    let time = Timestamp(seconds: time.seconds, nanoseconds: Int64(time.nanoseconds))
    return RouteResult(sequence: sequence, time: time, url: command, outcome: outcome).json + [
      UInt8(ascii: "\n")
    ]
  }
}
