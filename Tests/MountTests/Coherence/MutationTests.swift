import Posix
import TestSupport
import Testing

/// Stacks made up at random, changed at random while they are mounted, and compared with the model.
extension MountTests {
  @Suite struct MutationTests {
    @Test(
      "after a barrier the mount is what the model says", .timeLimit(.minutes(10)),
      arguments: MutationRun.seeds(percent: 90))
    func withBarrier(seed: UInt64) throws {
      try MutationRun(seed: seed).run { try $0.barrier() }
    }

    @Test(
      "20 ms later the mount is what the model says", .timeLimit(.minutes(10)),
      arguments: MutationRun.seeds(percent: 10))
    func withoutBarrier(seed: UInt64) throws {
      // How soon a change is seen is the benchmark's affair: a busy machine may be late. What matters here is that
      // nothing stays as it was.
      try MutationRun(seed: seed).run(patience: 3) { _ in Clock.sleep(0.02) }
    }

    @Test(
      "the same when files are passed through", .timeLimit(.minutes(10)),
      arguments: MutationRun.seeds(percent: 20))
    func passedThrough(seed: UInt64) throws {
      try MutationRun(seed: seed, options: ["passthrough=0"]).run { try $0.barrier() }
    }
  }
}

/// The changes that a seed makes up.
struct MutationRun {
  /// How many changes are made to one mount.
  static let stepsPerSeed = 150

  /// As many seeds as that part of all steps needs. `BUNDLEFS_STEPS` says how many steps there are in all.
  static func seeds(percent: Int) -> [UInt64] {
    let steps = Binary.variable("BUNDLEFS_STEPS").flatMap { Int($0) } ?? 6000
    return Seeds.chosen(max(1, steps * percent / 100 / stepsPerSeed))
  }

  let seed: UInt64
  /// Of the mount.
  var options: [ByteString] = []
  /// Whether changes are announced, and a watcher on every directory is to hear of each.
  var isWatched = false

  /// Makes the stack, mounts it, and changes and compares in turn.
  /// - Parameters:
  ///   - settle: what makes sure that the changes are seen.
  ///   - patience: for how many seconds it may be looked again before a difference counts.
  func run(patience: Double = 0, settle: (Mount) throws -> Void) throws {
    let folder = try TemporaryFolder()
    var random = SplitMix64(seed: seed)
    let names = NamePool.choose(using: &random)
    let isOwnFileSystem = seed % 8 >= 6 && OwnFileSystem.isFit
    let plans = StackGenerator.stack(
      seed: seed, count: seed % 2 == 0 ? 2 : 3, isOverlayOnly: false, scale: .small, names: names)
    let layers = try plans.enumerated().map { index, plan in
      try layer(plan, ByteString("layer\(index)"), in: folder, onOwnFileSystem: isOwnFileSystem)
    }
    var mutator = LayerMutator(layers, names: names, seed: seed, isOneFileSystem: !isOwnFileSystem)
    let roots = layers.map(\.root)
    var setup = MountSetup(
      main: roots[roots.count - 1], point: try folder.folder("mount"), substitutions: roots.dropLast())
    setup.options = options + [isWatched ? "announce=on" : "announce=off"]
    try withMount(setup) { mount in
      let ears = isWatched ? try WatcherOracle(mount.point) : nil
      let warmer = MountWarmer(mount.point, names: names, seed: seed)
      let held = HeldDirectories(mount.point, names: names, seed: seed)
      var log: [String] = []
      while log.count < Self.stepsPerSeed {
        warmer.warm(mutator.stack)
        try held.hold(mutator.layers)
        try ears?.listen(mutator.stack)
        for _ in 0..<random.number(1...5) {
          log.append("\(log.count): \(try mutator.step())")
          try held.drop(mutator.layers)
        }
        try settle(mount)
        let listsFirst = random.percent(30)
        var differences: [String] = []
        _ = eventually(within: patience) {
          differences = held.differences(mutator.layers)
          differences += self.differences(mutator, at: mount.point, names, listsFirst: listsFirst)
          return differences.isEmpty
        }
        differences += try ears?.missed(mutator.stack) ?? []
        if !differences.isEmpty {
          Issue.record(report(differences, log))
          return
        }
        mutator.sight.lookedAtAll(mutator.layers)
      }
    }
  }

  private func layer(
    _ plan: PlannedLayer, _ name: ByteString, in folder: TemporaryFolder, onOwnFileSystem: Bool
  ) throws -> LiveLayer {
    let home = try folder.folder(name)
    if onOwnFileSystem { try Command("mount", "-t", "tmpfs", "tmpfs", home.text).check() }
    return try LiveLayer(
      plan, at: try folder.folder(name / "layer"), aside: try folder.folder(name / "aside"))
  }

  private func differences(
    _ mutator: LayerMutator, at point: ByteString, _ names: [ByteString], listsFirst: Bool
  ) -> [String] {
    let extent = TreeComparison.Extent(
      absentNames: Set(names), isUnsureOfLinks: mutator.sight.doubts, listsFirst: listsFirst)
    return TreeComparison.differences(mutator.stack, at: point, judge: .bundlefs, extent: extent)
  }

  private func report(_ differences: [String], _ log: [String]) -> Comment {
    """
    seed \(seed) (run it alone with BUNDLEFS_SEED=\(seed)): \(differences.count) differences after step \
    \(log.count - 1)
    \(differences.prefix(12).joined(separator: "\n"))
    the last changes:
    \(log.suffix(10).joined(separator: "\n"))
    """
  }
}
