import Glibc
import Posix
import Routing

/// `bundlefs diff MOUNTPOINT [PATH] [--json]` and `bundlefs tree MOUNTPOINT [PATH] [--json]`.
struct ComparisonCommand {
  private let mountPoint: MountPoint
  private let start: [[UInt8]]
  private let isTree: Bool
  private let isJSON: Bool

  init(_ arguments: [[UInt8]], isTree: Bool) throws(Failure) {
    let command = isTree ? "tree" : "diff"
    let operands = arguments.filter { $0 != Array("--json".utf8) }
    if let option = operands.first(where: { $0.starts(with: "--".utf8) }) {
      throw .usage("'\(command)' has no option '\(option.shown)'")
    }
    guard let given = operands.first, operands.count <= 2 else {
      throw .usage("'\(command)' needs a MOUNTPOINT and takes at most one PATH")
    }
    self.isTree = isTree
    isJSON = operands.count < arguments.count
    mountPoint = try MountPoint(mounted: given)
    start = operands.count == 2 ? mountPoint.components(of: operands[1]) : []
    if start.contains(Array("..".utf8)) { throw .usage("the PATH of '\(command)' must not contain '..'") }
  }

  /// - Returns: the exit status: 1 if a directory could not be compared.
  func run() throws(Failure) -> CInt {
    signal(SIGPIPE, SIG_DFL)
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
