import Glibc
import Posix
import TestSupport
import Testing

/// The steps of a run.
final class WriteModelSteps {
  private let run: WriteModelRun
  private let mount: Mount
  private let trees: WriteModelTrees
  private let names: [ByteString]
  private var random: SplitMix64
  private var generator: OperationGenerator
  private let mounted: OperatedTree
  private let copied: OperatedTree
  private var log: [String] = []

  init(run: WriteModelRun, mount: Mount, trees: WriteModelTrees, names: [ByteString], random: SplitMix64) {
    (self.run, self.mount, self.trees, self.names, self.random) = (run, mount, trees, names, random)
    generator = OperationGenerator(trees.copy, names: names, random: SplitMix64(seed: run.seed ^ 0x5eed))
    mounted = OperatedTree(mount.point)
    copied = OperatedTree(trees.copy)
  }

  /// - Returns: whether there was no difference.
  func compareAll() throws -> Bool {
    defer {
      mounted.closeAll()
      copied.closeAll()
    }
    for step in 0..<WriteModelRun.stepsPerSeed {
      var differences = try operate()
      if step % 25 == 24 { differences += trees.comparison(with: mount.point).allDifferences() }
      if differences.isEmpty, run.hasEdits, random.percent(4) { differences = try edit() }
      if !differences.isEmpty {
        Issue.record(report(differences))
        return false
      }
    }
    let differences = trees.comparison(with: mount.point).allDifferences()
    if !differences.isEmpty { Issue.record(report(differences)) }
    return differences.isEmpty
  }

  private func operate() throws -> [String] {
    let (operation, user) = try generator.next(copied.slots)
    log.append("\(log.count): \(user == 0 ? "" : "as \(user): ")\(operation)")
    let mayRefuse = mayRefuse(operation)
    let death = run.hasDeaths && random.percent(8) ? try killWorker(after: random.number(0...1500)) : nil
    let seen = try mounted.perform(operation, as: user)
    death?.join()
    if mayRefuse, seen == .failed(.crossDeviceLink) {
      log[log.count - 1] += ": EXDEV"
      return []
    }
    let expected = try copied.perform(operation, as: user)
    log[log.count - 1] += ": \(expected)"
    if seen != expected { return ["result: expected \(expected), seen \(seen)"] }
    let comparison = trees.comparison(with: mount.point)
    let paths = Set(operation.paths + operation.paths.filter { $0.count > 0 }.map(\.parent))
    return try paths.sorted().flatMap { try comparison.differences(at: $0) }
  }

  private func mayRefuse(_ operation: WriteOperation) -> Bool {
    guard case .rename(let path, let other, let flags) = operation else { return false }
    return trees.mayRefuseRename(path) || (flags == 2 && trees.mayRefuseRename(other))
  }

  /// Kills the worker after some microseconds, while an operation may be in flight.
  private func killWorker(after delay: Int) throws -> ThreadHandle? {
    let worker = mount.worker
    if worker == mount.process.pid { return nil }
    log[log.count - 1] += " (the worker is killed)"
    return ThreadHandle(
      try Thread(name: "killer") {
        usleep(UInt32(delay))
        kill(worker, SIGKILL)
      })
  }

  /// Changes the layers and makes the copy anew.
  private func edit() throws -> [String] {
    mounted.closeAll()
    copied.closeAll()
    var edits = LayerEdits(trees.layers, names: names, random: SplitMix64(seed: random.next()))
    for _ in 0..<random.number(1...4) { log.append("\(log.count): below: \(try edits.step())") }
    try mount.barrier()
    for name in try trees.copy.names() { (trees.copy / name).removeTree() }
    try LayerMaker.make(
      FlattenedStack.flatten(try trees.layers.map { try DiskPlan.read($0) }), at: trees.copy)
    return trees.comparison(with: mount.point).allDifferences()
  }

  private func report(_ differences: [String]) -> Comment {
    """
    seed \(run.seed) (reproduce with BUNDLEFS_SEED=\(run.seed)): \(differences.count) differences after step \
    \(log.count - 1)
    \(WriteModelRun.lines(differences))
    last steps:
    \(log.suffix(15).joined(separator: "\n"))
    """
  }
}
