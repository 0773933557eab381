import ControlClient
import Glibc
import Posix
import Routing

/// `bundlefs route MOUNTPOINT URL…` and `bundlefs match MOUNTPOINT URL…`; the URL `-` stands for those on standard input.
/// `bundlefs route MOUNTPOINT --before OTHER NAME PATTERN` registers a route.
struct RouteCommand {
  private let control: ControlFileLocation
  private let arguments: [[UInt8]]
  private let prefix: [UInt8]
  private var status: CInt = 0

  init(_ arguments: [[UInt8]], posts: Bool) throws(Failure) {
    let name = posts ? "route" : "match"
    let operands = try posts ? Self.withRoute(arguments) : arguments
    guard operands.count >= 2 else { throw .usage("'\(name)' needs a MOUNTPOINT and at least one URL") }
    self.arguments = operands.dropFirst().map { Self.trimmed($0) }
    if let option = self.arguments.first(where: { $0.starts(with: "--".utf8) }) {
      throw .unknownOption(option.shown, of: name)
    }
    if let url = self.arguments.first(where: Self.isIgnored) { throw .usage("'\(url.shown)' is not a URL") }
    for url in self.arguments where url.contains(UInt8(ascii: "\n")) {
      throw .usage("'\(url.shown)' contains a newline; pass each URL as an argument of its own")
    }
    prefix = posts ? [] : Array("match ".utf8)
    control = try MountPoint(mounted: operands[0]).controlFile()
  }

  /// The arguments with the line that registers a route in place of `--before OTHER NAME PATTERN`.
  private static func withRoute(_ arguments: [[UInt8]]) throws(Failure) -> [[UInt8]] {
    guard let index = arguments.firstIndex(where: { $0.elementsEqual("--before".utf8) }) else {
      return arguments
    }
    let operands = arguments[..<index] + arguments[(index + 1)...].dropFirst()
    guard operands.count == 3, index + 1 < arguments.count else {
      throw .usage("'route' needs MOUNTPOINT, NAME and PATTERN with '--before OTHER'")
    }
    let words = [Array("route".utf8), operands[1], operands[2], Array("before".utf8), arguments[index + 1]]
    return [operands[0], Array(words.joined(separator: [UInt8(ascii: " ")]))]
  }

  /// - Returns: the exit status: 1 if a URL was rejected.
  mutating func run() throws(Failure) -> CInt {
    var writer = try Failure.naming(control.path.shown) { () throws(Errno) in try ControlFileWriter(control) }
    var urls: [[UInt8]] = []
    for argument in arguments {
      if argument.elementsEqual("-".utf8) {
        try send(urls, to: &writer)
        urls = []
        try sendInput(to: &writer)
      } else {
        urls.append(argument)
      }
    }
    try send(urls, to: &writer)
    return status
  }

  /// Sends the lines of standard input as they arrive.
  private mutating func sendInput(to writer: inout ControlFileWriter) throws(Failure) {
    var lines = InputLines(STDIN_FILENO)
    while let urls = try Failure.naming("standard input", { () throws(Errno) in try lines.next() }) {
      try send(urls.map { Self.trimmed($0) }.filter { !Self.isIgnored($0) }, to: &writer)
    }
  }

  /// A line as its result shows it: without white space around it.
  private static func trimmed(_ line: [UInt8]) -> [UInt8] {
    let isInner = { (byte: UInt8) in !" \t\r".utf8.contains(byte) }
    guard let first = line.firstIndex(where: isInner), let last = line.lastIndex(where: isInner) else {
      return []
    }
    return Array(line[first...last])
  }

  /// Whether the control file ignores a line, for which there is no result.
  private static func isIgnored(_ line: [UInt8]) -> Bool {
    line.isEmpty || line[0] == UInt8(ascii: "#") || line[0] == UInt8(ascii: "{")
  }

  // MARK: - Batches

  /// The lines of one write, within the size of a WRITE request.
  private static let limits = (lines: 256, bytes: 60_000)

  private mutating func send(_ urls: [[UInt8]], to writer: inout ControlFileWriter) throws(Failure) {
    do throws(Errno) { try sendBatches(of: urls, to: &writer) } catch {
      throw .failed("\(control.path.shown): \(error)")
    }
  }

  private mutating func sendBatches(
    of urls: [[UInt8]], to writer: inout ControlFileWriter
  ) throws(Errno) {
    var rest = urls[...]
    while !rest.isEmpty {
      let batch = batch(of: rest)
      rest = rest.dropFirst(batch.count)
      let outcomes = try writer.write(
        batch.map { ControlFileWriter.Command(prefix + $0, url: Self.url(of: prefix + $0)) })
      var output = ""
      for (url, outcome) in zip(batch, outcomes) { report(outcome, of: url, writer.readsResults, &output) }
      Terminal.printLines(output)
    }
  }

  /// The first lines, as far as none changes what becomes of the next.
  private func batch(of urls: ArraySlice<[UInt8]>) -> ArraySlice<[UInt8]> {
    var (count, size) = (0, 0)
    for url in urls {
      size += prefix.count + url.count + 1
      let isAlone = !isEvaluatedOnly(url)
      if count > 0, isAlone || count == Self.limits.lines || size > Self.limits.bytes { break }
      count += 1
      if isAlone { break }
    }
    return urls.prefix(count)
  }

  /// What the result of a line shows as its URL.
  static func url(of line: [UInt8]) -> [UInt8] {
    switch try? ControlCommand(line) {
    case .post(let url), .match(let url): url.text
    default: line
    }
  }

  /// Whether a line is a URL that routes or resources take, and no command.
  private func isEvaluatedOnly(_ url: [UInt8]) -> Bool {
    switch try? ControlCommand(prefix + url) {
    case .post(let url), .match(let url): url.scheme != "bundlefs"
    default: false
    }
  }

  private mutating func report(
    _ outcome: ControlFileWriter.Outcome, of url: [UInt8], _ readsResults: Bool, _ output: inout String
  ) {
    // Posted, by a user who may not read the results.
    if outcome.error == nil, !readsResults, prefix.isEmpty { return }
    guard let result = outcome.result else {
      Terminal.printLines(output)
      output = ""
      Terminal.printError("\(url.shown): \(outcome.reason(readsResults: readsResults))")
      status = 1
      return
    }
    output += result.bytes.shown.escapingControls + "\n"
    if result.isRejected { status = 1 }
  }
}
