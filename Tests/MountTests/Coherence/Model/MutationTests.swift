import Posix
import TestSupport
import Testing

/// Random stacks are changed at random while they are mounted, and compared with the model.
extension MountTests {
  @Suite struct MutationTests {
    @Test(
      "after a barrier the mount matches the model", .timeLimit(.minutes(10)),
      arguments: MutationRun.seeds(percent: 90))
    func withBarrier(seed: UInt64) throws {
      try MutationRun(seed: seed).run { try $0.barrier() }
    }

    @Test(
      "after a barrier the mount of many layers matches the model", .timeLimit(.minutes(10)),
      arguments: MutationRun.seeds(percent: 40), [false, true])
    func manyLayers(seed: UInt64, foldsNames: Bool) throws {
      try MutationRun(seed: seed, foldsNames: foldsNames, layerCount: 4 + Int(seed % 9)).run {
        try $0.barrier()
      }
    }

    @Test(
      "after a barrier the mount of many layers matches the model while workers die",
      .timeLimit(.minutes(30)), arguments: MutationRun.seeds(percent: 10))
    func manyLayersDeaths(seed: UInt64) throws {
      try MutationRun(seed: seed, degradation: .deaths, layerCount: 4 + Int(seed % 9)).run {
        try $0.barrier()
      }
    }

    @Test(
      "after a barrier the mount matches the model while workers die", .timeLimit(.minutes(30)),
      arguments: MutationRun.seeds(percent: 20))
    func deaths(seed: UInt64) throws {
      try MutationRun(seed: seed, degradation: .deaths).run { try $0.barrier() }
    }

    @Test(
      "after a barrier the mount matches the model without case while workers die",
      .timeLimit(.minutes(30)), arguments: MutationRun.seeds(percent: 20))
    func foldedDeaths(seed: UInt64) throws {
      try MutationRun(seed: seed, foldsNames: true, degradation: .deaths).run { try $0.barrier() }
    }

    @Test(
      "after a barrier the mount matches the model with a layer that is laid at a folder",
      .timeLimit(.minutes(10)), arguments: MutationRun.seeds(percent: 10))
    func laid(seed: UInt64) throws { try MutationRun(seed: seed, isLaid: true).run { try $0.barrier() } }

    @Test(
      "after a barrier the mount matches the model with a laid layer while workers die",
      .timeLimit(.minutes(30)), arguments: MutationRun.seeds(percent: 10))
    func laidDeaths(seed: UInt64) throws {
      try MutationRun(seed: seed, degradation: .deaths, isLaid: true).run { try $0.barrier() }
    }

    @Test(
      "the mount matches the model without case 20 ms after a change", .timeLimit(.minutes(10)),
      arguments: MutationRun.seeds(percent: 10))
    func foldedWithoutBarrier(seed: UInt64) throws {
      try MutationRun(seed: seed, foldsNames: true).run(timeout: 3) { _ in Clock.sleep(0.02) }
    }

    @Test(
      "after a barrier the mount matches the model with plain timeouts", .timeLimit(.minutes(10)),
      arguments: ["cache=3600", "cache=none"] as [ByteString], MutationRun.seeds(percent: 5))
    func timeouts(option: ByteString, seed: UInt64) throws {
      try MutationRun(seed: seed, options: [option]).run { try $0.barrier() }
    }

    @Test(
      "the mount matches the model 20 ms after a change", .timeLimit(.minutes(10)),
      arguments: MutationRun.seeds(percent: 10))
    func withoutBarrier(seed: UInt64) throws {
      // The benchmark measures the delay; on a busy machine it may be longer. Here no change may be missed.
      try MutationRun(seed: seed).run(timeout: 3) { _ in Clock.sleep(0.02) }
    }

    @Test(
      "after a barrier the mount matches the model with passthrough", .timeLimit(.minutes(10)),
      arguments: MutationRun.seeds(percent: 20))
    func passedThrough(seed: UInt64) throws {
      try MutationRun(seed: seed, options: ["passthrough=0"]).run { try $0.barrier() }
    }
  }
}

/// A mounted stack and its changes, all determined by a seed.
struct MutationRun {
  /// The number of changes to one mount.
  static let stepsPerSeed = 150

  /// The seeds for this percentage of all steps.
  static func seeds(percent: Int) -> [UInt64] {
    Seeds.chosen(max(1, TestLength.steps(full: 6000, brief: 1200) * percent / 100 / stepsPerSeed))
  }

  let seed: UInt64
  /// The mount options.
  var options: [ByteString] = []
  /// Whether changes are announced, and every change must cause an event.
  var isWatched = false
  /// Whether case does not count in names.
  var foldsNames = false
  var degradation = Degradation.none
  /// Whether one of the substitutions is laid at a folder.
  var isLaid = false
  /// How many layers there are; nil for two or three.
  var layerCount: Int?

  /// Makes and mounts the stack, then alternates changes and comparisons.
  /// - Parameters:
  ///   - timeout: seconds for which a comparison is repeated until there is no difference.
  ///   - synchronize: waits until the changes are visible.
  func run(timeout: Double = 0, synchronize: (Mount) throws -> Void) throws {
    let folder = try TemporaryFolder()
    var random = SplitMix64(seed: seed)
    let names = foldsNames ? FoldedNames.choose(using: &random) : NamePool.choose(using: &random)
    let onOwnFileSystem = seed % 8 >= 6 && TmpfsSupport.keepsUserAttributes
    var limits = degradation == .fuse ? StackLimits.bindfs : StackLimits()
    // The model of hard links does not know the folders.
    if isLaid { limits.hasHardLinks = false }
    let plans = StackGenerator.stack(
      seed: seed, count: layerCount ?? (seed % 2 == 0 ? 2 : 3), isOverlayOnly: false, scale: .small,
      names: names,
      limits: limits, foldsNames: foldsNames)
    let layers = try plans.enumerated().map { index, plan in
      try layer(plan, ByteString("layer\(index)"), in: folder, onOwnFileSystem: onOwnFileSystem)
    }
    var mutator = LayerMutator(
      layers, names: names, seed: seed, onOneFileSystem: !onOwnFileSystem, limits: limits)
    let views = try degradation.views(layers.map(\.root), in: folder, &random)
    let roots = views.map(\.path)
    let lower = Int(seed) % (roots.count - 1)
    let laying =
      isLaid ? Laying.choose(names, over: mutator.stack[lower].root.metadata, &random) : nil
    var substitutions = Array(roots.dropLast())
    if let laying { substitutions[lower] = laying.name(of: substitutions[lower]) }
    func shown(_ mutator: LayerMutator) -> [PlannedLayer] {
      var stack = mutator.stack
      if let laying { stack[lower] = stack[lower].laid(laying) }
      return stack
    }
    var setup = MountSetup(
      main: roots[roots.count - 1], point: try folder.folder("mount"), substitutions: substitutions)
    setup.options = options + [isWatched ? "announce=on" : "announce=off"]
    if foldsNames { setup.options.append("case=insensitive") }
    let limit = try degradation.limit(using: &random)
    defer { withExtendedLifetime((views, limit)) { limit?.restore() } }
    try withMount(setup) { mount in
      if degradation.isReadAtStart { limit?.restore() }
      let oracle = isWatched ? try WatcherOracle(mount.point) : nil
      let warmer = CacheWarmer(mount.point, names: names, seed: seed)
      let openDirectories = OpenDirectories(mount.point, names: names, seed: seed)
      var log: [String] = []
      while log.count < Self.stepsPerSeed {
        warmer.warm(shown(mutator))
        if !isLaid { try openDirectories.openMore(mutator.layers) }
        try oracle?.watchAll(mutator.stack)
        let death = degradation.death(using: &random)
        try degradation.change(mount, death) {
          for _ in 0..<random.number(1...5) {
            log.append("\(log.count): \(try mutator.step())")
            try openDirectories.closeStale(mutator.layers)
          }
        }
        try synchronize(mount)
        let listsFirst = random.percent(30)
        var differences: [String] = []
        _ = eventually(within: timeout) {
          differences = openDirectories.differences(mutator.layers)
          differences += self.differences(
            shown(mutator), mutator, at: mount.point, names, listsFirst: listsFirst)
          return differences.isEmpty
        }
        differences += try oracle?.missedChanges(mutator.stack) ?? []
        if !differences.isEmpty {
          Issue.record(report(differences, log))
          return
        }
        mutator.hardLinks.recordFullWalk(mutator.layers)
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
    _ stack: [PlannedLayer], _ mutator: LayerMutator, at point: ByteString, _ names: [ByteString],
    listsFirst: Bool
  ) -> [String] {
    let scope = TreeComparison.Scope(
      absentNames: Set(names), uncertainLinkCounts: mutator.hardLinks.uncertain, listsFirst: listsFirst)
    return TreeComparison.differences(stack, at: point, implementation: .bundlefs, scope: scope)
  }

  private func report(_ differences: [String], _ log: [String]) -> Comment {
    """
    seed \(seed), \(degradation) (reproduce with BUNDLEFS_SEED=\(seed)): \(differences.count) differences after step \
    \(log.count - 1)
    \(differences.prefix(12).joined(separator: "\n"))
    last changes:
    \(log.suffix(10).joined(separator: "\n"))
    """
  }
}
