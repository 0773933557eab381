import Glibc
import Layers
import Posix
import Routing

/// `bundlefs apply MOUNTPOINT [PATH…] [--to LAYER] [--dry-run] [--yes] [--json]`: writes what the top layer has into a layer below,
/// and empties the top layer of it.
struct ApplyCommand {
  private let arguments: ApplyArguments
  private let mountPoint: MountPoint

  init(_ given: [[UInt8]]) throws(Failure) {
    arguments = try ApplyArguments(given)
    let needsAnswer = !arguments.isConfirmed && !arguments.isDryRun
    if needsAnswer, isatty(STDIN_FILENO) == 0 {
      throw .failed(
        "apply: standard input is not a terminal; add '--yes' to apply without a question, or '--dry-run'"
      )
    }
    mountPoint = try MountPoint(mounted: arguments.mountPoint)
  }

  /// - Returns: the exit status: 1 if something was kept or has failed, or the answer is no.
  func run() throws(Failure) -> CInt {
    _ = DescriptorLimit.raise()
    let top = try TopLayer(of: mountPoint)
    defer { top.finish() }
    let layers = try ApplyLayers(top, to: arguments.target)
    defer { layers.finish() }
    let (plan, missing) = try self.plan(layers)
    let output = ApplyOutput(plan, layers)
    if arguments.isDryRun || plan.isEmpty {
      output.printPlan(isJSON: arguments.isJSON, isDryRun: arguments.isDryRun, faults: [])
      return missing || output.keepsAny ? 1 : 0
    }
    if !arguments.isConfirmed {
      output.printPlan(isJSON: false, isDryRun: true, faults: [])
      if !Terminal.confirm("Apply to \(layers.paths[layers.index])?") { return 1 }
    }
    let faults = try apply(plan, layers)
    if arguments.isJSON {
      output.printPlan(isJSON: true, isDryRun: false, faults: faults)
    } else if arguments.isConfirmed {
      output.printPlan(isJSON: false, isDryRun: false, faults: faults)
    }
    for fault in faults { Terminal.printError("\(shown(fault.path)): \(ApplyOutput.reason(fault.error))") }
    return missing || output.keepsAny || !faults.isEmpty ? 1 : 0
  }

  /// - Returns: the plan, and whether a path leads nowhere.
  private func plan(_ layers: ApplyLayers) throws(Failure) -> (ApplyPlan, isMissing: Bool) {
    let given = try layers.top.components(of: arguments.paths, "apply")
    let progress = Locked(ProgressBar(title: "comparing:"))
    defer { progress.withLock { $0.end() } }
    let options = layers.top.status["options"]
    let patterns = options?["hide"]?.string ?? ""
    let hidden = MountOptions.hidden(shown: patterns, layers.top.foldsNames)
    // The status shows bytes that are no UTF-8 as U+FFFD.
    if !patterns.isEmpty, hidden == nil || patterns.contains("\u{FFFD}") {
      throw .failed(
        "hide=\(patterns): the mount's status does not say these patterns exactly; remount without 'hide' to apply"
      )
    }
    var planner = try Failure.naming(layers.top.path) { () throws(Errno) in
      try ApplyPlanner(
        layers.stack, target: layers.index, reserved: layers.top.reserved,
        mergesTables: options?["strings"]?.string == "merge", hidden: hidden
      ) { count in progress.withLock { $0.show("\(count) entries") } }
    }
    var isMissing = false
    for path in Self.outermost(given.isEmpty ? [[]] : given) {
      let isFound = try Failure.naming(shown(path)) { () throws(Errno) in try planner.add(path) }
      if isFound { continue }
      if !mountPoint.shows(path) {
        Terminal.printError("\(shown(path)): \(Errno.noSuchFileOrDirectory)")
        isMissing = true
      } else {
        Terminal.printError("\(shown(path)): nothing to apply in \(layers.top.path)")
      }
    }
    return (planner.plan, isMissing)
  }

  /// The paths that no other one contains, each once.
  static func outermost(_ paths: [[[UInt8]]]) -> [[[UInt8]]] {
    var found: [[[UInt8]]] = []
    for path in paths.sorted(by: { $0.count < $1.count }) where !found.contains(where: path.starts(with:)) {
      found.append(path)
    }
    return found
  }

  private func apply(_ plan: ApplyPlan, _ layers: ApplyLayers) throws(Failure) -> [ApplyRun.Fault] {
    let progress = Locked(ProgressBar(title: "applying:"))
    defer { progress.withLock { $0.end() } }
    let total = plan.steps.count
    var run = ApplyRun(
      plan, from: layers.top.upper, to: layers.target, hasBelow: layers.index < layers.paths.count - 1
    ) { done, bytes in
      let size = bytes > 1 << 20 ? ", \(bytes >> 20) MiB of the next one" : ""
      progress.withLock { $0.show("\(done) of \(total) entries\(size)") }
    }
    do throws(ApplyRun.Fault) { try run.write() } catch {
      throw .failed(
        "\(shown(error.path)): \(error.error); \(layers.top.path) still has everything, so 'apply' can be repeated"
      )
    }
    // The mount knows all of the target before the top layer loses it.
    try? ControlFileCommand.sync([mountPoint.path]).run()
    run.empty()
    return run.faults
  }
}

extension MountPoint {
  /// Whether the mount shows a path.
  func shows(_ path: [[UInt8]]) -> Bool {
    do throws(Errno) {
      var directory = try open([.pathOnly, .directory])
      for name in path.dropLast() {
        directory = try directory.open(name, [.pathOnly, .directory, .noFollow])
      }
      guard let name = path.last else { return true }
      return try withCName(name) { name throws(Errno) in try directory.contains(name) }
    } catch {
      return false
    }
  }
}
