import Posix

/// The directories of one layer on the way to a step, open. Steps are visited in order, or in the opposite order.
struct ApplyDirectories {
  private let plan: ApplyPlan
  private let name: @Sendable (ApplyPlan.Step) -> [UInt8]
  private var open: [(step: Int, directory: LayerDirectory)]

  /// - Parameter name: that a step's directory has in the layer.
  init(
    _ plan: ApplyPlan, _ root: LayerDirectory, _ name: @escaping @Sendable (ApplyPlan.Step) -> [UInt8]
  ) {
    (self.plan, self.name, open) = (plan, name, [(0, root)])
  }

  /// The directory of a step, one component below the other, without following links.
  /// - Throws: ENOENT if it is gone; EXDEV where another file system is mounted.
  mutating func directory(of step: Int) throws(Errno) -> LayerDirectory {
    var (chain, next) = ([Int](), step)
    while true {
      while let last = open.last, last.step > next { open.removeLast() }
      if open.last?.step == next { break }
      chain.append(next)
      next = plan.steps[next].parent
    }
    var directory = open[open.count - 1].directory
    for index in chain.reversed() {
      directory = try Self.enter(name(plan.steps[index]), in: directory)
      open.append((index, directory))
    }
    return directory
  }

  private static func enter(_ name: [UInt8], in parent: LayerDirectory) throws(Errno) -> LayerDirectory {
    let found = try withCName(name) { name throws(Errno) in
      try parent.findExact(name, isLikelyDirectory: true)
    }
    guard case .directory(let directory, _) = found else { throw .noSuchFileOrDirectory }
    if directory.identity.device != parent.identity.device { throw .crossDeviceLink }
    return directory
  }
}
