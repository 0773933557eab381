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
  /// What the layers had at the paths of the last operation.
  private var layersBefore: [String] = []
  private var lastPaths: [ByteString] = []
  private var lastSlot: Int?

  init(run: WriteModelRun, mount: Mount, trees: WriteModelTrees, names: [ByteString], random: SplitMix64) {
    (self.run, self.mount, self.trees, self.names, self.random) = (run, mount, trees, names, random)
    generator = OperationGenerator(trees.copy, names: names, random: SplitMix64(seed: run.seed ^ 0x5eed))
    generator.setsIDBits = !run.options.contains("passthrough")
    mounted = OperatedTree(mount.point)
    copied = OperatedTree(trees.copy)
  }

  /// - Returns: whether there was no difference.
  func compareAll() throws -> Bool {
    defer {
      mounted.closeAll()
      copied.closeAll()
    }
    // Until then the kernel takes root to own the mount's root.
    _ = try mount.point.status()
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
    var (operation, user) = try generator.next(copied.slots)
    if run.foldsNames { operation = operation.mapPaths { FoldedPaths.respelled($0, using: &random) } }
    remember(operation)
    log.append("\(log.count): \(user == 0 ? "" : "as \(user): ")\(operation)")
    let mayRefuse = mayRefuse(operation)
    // With case folding, paths of the copy are others.
    let times: MovedTimes? =
      if case .rename(let path, _, 0...1) = operation, !run.foldsNames {
        try MovedTimes(of: path, in: mount.point, trees)
      } else { nil }
    let death =
      run.hasDeaths && random.percent(8)
      ? try killWorker(after: random.number(0...(random.percent(50) ? 1500 : 150))) : nil
    let seen = try mounted.perform(operation, as: user)
    death?.join()
    if mayRefuse, seen == .failed(.crossDeviceLink) {
      log[log.count - 1] += ": EXDEV"
      return []
    }
    let copiedOperation = run.foldsNames ? FoldedPaths(root: trees.copy).resolved(operation) : operation
    let expected = try copied.perform(copiedOperation, as: user)
    if expected == .done, case .rename(let path, let other, _) = operation {
      try times?.set(from: path, to: other, in: trees.copy)
    }
    log[log.count - 1] += ": \(expected)"
    if isOfLostDirectory(operation, seen) || isOfDevice(operation, seen) { return [] }
    if seen != expected { return ["result: expected \(expected), seen \(seen)"] }
    return try heldDifferences(operation) + differences(of: copiedOperation)
  }

  private func remember(_ operation: WriteOperation) {
    (lastPaths, lastSlot) = (operation.paths, nil)
    if case .held(let slot, _) = operation {
      lastSlot = slot
      if let path = copied.heldPaths[slot] { lastPaths = [path] }
    }
    layersBefore = lastPaths.map { trees.description(of: $0) }
  }

  private func differences(of operation: WriteOperation) throws -> [String] {
    let comparison = trees.comparison(with: mount.point)
    var paths = operation.paths
    if case .held(let slot, _) = operation, let path = copied.heldPaths[slot] { paths = [path] }
    // Also what has another spelling by now.
    if run.foldsNames { paths = paths.map { FoldedPaths(root: trees.copy).resolved($0) } }
    // Those of the parents, too.
    return try Set(paths + paths.filter { $0.count > 0 }.map(\.parent)).sorted()
      .flatMap { try comparison.differences(at: $0) }
  }

  /// What a descriptor shows of a file, which may have lost its name.
  private func heldDifferences(_ operation: WriteOperation) throws -> [String] {
    guard case .held(let slot, _) = operation, copied.slots.contains(slot) else { return [] }
    let status = WriteOperation.held(slot: slot, .status)
    let (seen, expected) = (try mounted.perform(status, as: 0), try copied.perform(status, as: 0))
    return seen == expected || isOfLostDirectory(status, seen)
      ? [] : ["fstat of the descriptor: expected \(expected), seen \(seen)"]
  }

  /// Whether a successor answered for a removed directory, which only its predecessor knew.
  private func isOfLostDirectory(_ operation: WriteOperation, _ result: OperationResult) -> Bool {
    guard run.hasDeaths, result == .failed(.staleFileHandle), case .held(let slot, _) = operation else {
      return false
    }
    return copied.isRemovedDirectory(slot)
  }

  /// Whether a device was not opened because it is on a mount.
  private func isOfDevice(_ operation: WriteOperation, _ result: OperationResult) -> Bool {
    guard result == .failed(.permissionDenied) else { return false }
    return operation.paths.contains {
      let path = run.foldsNames ? FoldedPaths(root: trees.copy).resolved($0) : $0
      let kind = try? (trees.copy / path).status().kind
      return kind == .blockDevice || kind == .characterDevice
    }
  }

  private func mayRefuse(_ operation: WriteOperation) -> Bool {
    guard case .rename(let path, let other, let flags) = operation else { return false }
    return trees.mayRefuseRename(path, to: other)
      || (flags == 2 && trees.mayRefuseRename(other, to: path))
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
    var edits = LayerEdits(
      trees.layers, names: names, foldsNames: run.foldsNames, random: SplitMix64(seed: random.next()))
    edits.setsIDBits = !run.options.contains("passthrough")
    for _ in 0..<random.number(1...4) { log.append("\(log.count): below: \(try edits.step())") }
    try mount.barrier()
    for name in try trees.copy.names() { (trees.copy / name).removeTree() }
    try LayerMaker.make(
      FlattenedStack.flatten(try run.plans(of: trees.layers), keepsLinks: !run.hasHardLinks), at: trees.copy)
    return trees.comparison(with: mount.point).allDifferences()
  }

  /// The last steps, and those before that have to do with the last one.
  private var relevantSteps: [String] {
    let words =
      lastPaths.filter { $0.count > 0 }.map(\.description) + (lastSlot.map { ["descriptor \($0)"] } ?? [])
    let last = Binary.variable("BUNDLEFS_LOG").flatMap { Int($0) } ?? 12
    return log.enumerated().filter { index, line in
      index >= log.count - last || words.contains { line.contains($0) }
    }.suffix(max(90, last)).map(\.element)
  }

  private func report(_ differences: [String]) -> Comment {
    """
    seed \(run.seed) (reproduce with BUNDLEFS_SEED=\(run.seed)): \(differences.count) differences after step \
    \(log.count - 1)
    \(WriteModelRun.lines(differences))
    layers before:
    \(layersBefore.joined(separator: "\n"))
    steps:
    \(relevantSteps.joined(separator: "\n"))
    """
  }
}
