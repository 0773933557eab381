import Glibc
import Posix
import Routing

/// `bundlefs diff MOUNTPOINT [PATH] [--json|--html FILE]` and `bundlefs tree MOUNTPOINT [PATH] [--json]`.
struct ComparisonCommand {
  private let mountPoint: MountPoint
  private let start: [[UInt8]]
  private let isTree: Bool
  private let isJSON: Bool
  /// The file that gets a page instead of standard output.
  private let report: [UInt8]?

  init(_ arguments: [[UInt8]], isTree: Bool) throws(Failure) {
    let command = isTree ? "tree" : "diff"
    var (operands, isJSON, report, rest) = ([[UInt8]](), false, [UInt8]?.none, arguments[...])
    while let word = rest.popFirst() {
      switch word.shown {
      case "--json": isJSON = true
      case "--html" where !isTree:
        guard let file = rest.popFirst(), !file.isEmpty else { throw .usage("'--html' needs a FILE") }
        report = file
      case let option where option.hasPrefix("--"): throw .unknownOption(option, of: command)
      default: operands.append(word)
      }
    }
    if isJSON, report != nil { throw .usage("'diff' takes '--json' or '--html', not both") }
    guard let given = operands.first, operands.count <= 2 else {
      throw .usage("'\(command)' needs a MOUNTPOINT and takes at most one PATH")
    }
    (self.isTree, self.isJSON, self.report) = (isTree, isJSON, report)
    mountPoint = try MountPoint(mounted: given)
    start = operands.count == 2 ? mountPoint.components(of: operands[1]) : []
    if start.contains(Array("..".utf8)) { throw .usage("the PATH of '\(command)' must not contain '..'") }
  }

  /// - Returns: the exit status: 1 if a directory could not be compared.
  func run() throws(Failure) -> CInt {
    signal(SIGPIPE, SIG_DFL)
    if let report {
      return status(try ReportPage(mountPoint, from: start).write(to: report))
    }
    let faults: [ComparisonWalker.Fault]
    do throws(Errno) {
      // A tree that is printed to the terminal is its own progress display.
      let printsWhileWalking = isTree && !isJSON && isatty(STDOUT_FILENO) == 1
      var walker = try ComparisonWalker(
        of: mountPoint, from: start, includesUnchanged: isTree, showsProgress: !printsWhileWalking)
      try print(&walker)
      faults = walker.faults
    } catch {
      throw .failed("\(shown(start)): \(ComparisonWalker.Fault(path: start, error: error).reason)")
    }
    return status(faults)
  }

  private func status(_ faults: [ComparisonWalker.Fault]) -> CInt {
    for fault in faults { Terminal.printError("\(shown(fault.path)): not compared: \(fault.reason)") }
    return faults.isEmpty ? 0 : 1
  }

  private func print(_ walker: inout ComparisonWalker) throws(Errno) {
    if isJSON { return Terminal.print(try ComparisonJSON.text(&walker, includesUnchanged: isTree)) }
    let colours = Colours.forOutput
    if isTree {
      try TreeOutput.print(&walker, title: shown(start), colours)
    } else {
      let isWhole = start.isEmpty
      let mounted = isWhole ? try? MountedLayers(of: mountPoint) : nil
      try DifferenceOutput.print(
        &walker, isWhole: isWhole, hints: mounted?.layers.map(\.hint) ?? [], colours)
    }
  }

  private func shown(_ path: [[UInt8]]) -> String {
    String(escaping: ([mountPoint.path] + path).joinedPath)
  }
}
