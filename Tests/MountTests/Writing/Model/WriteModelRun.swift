import Glibc
import Posix
import TestSupport
import Testing

/// Operations through a writable mount and on a plain copy of what it shows, all determined by a seed.
struct WriteModelRun {
  /// The number of operations in one mount.
  static let stepsPerSeed = 400

  /// The seeds for this percentage of all steps.
  static func seeds(percent: Int) -> [UInt64] {
    Seeds.chosen(max(1, TestLength.steps(full: 4000, brief: 2000) * percent / 100 / stepsPerSeed))
  }

  let seed: UInt64
  /// The layers beside MAIN.
  var substitutions = 1
  var options: [ByteString] = []
  /// Whether layers are changed from below now and then.
  var hasEdits = false
  /// Whether workers die now and then.
  var hasDeaths = false
  /// Whether case does not count in names.
  var foldsNames = false
  /// Whether files of the layers below have several hard links, each of which is a file of its own when it is changed.
  var hasHardLinks = false

  func run() throws {
    let folder = try TemporaryFolder()
    var random = SplitMix64(seed: seed)
    // A marker's name is longer than that of what it hides.
    let names =
      foldsNames
      ? FoldedNames.choose(using: &random).filter { !hasMarkers || $0.count < 250 }
      : NamePool.choose(using: &random)
    let layers = try makeLayers(in: folder, names)
    let copy = try folder.folder("copy")
    try LayerMaker.make(FlattenedStack.flatten(try plans(of: layers), keepsLinks: !hasHardLinks), at: copy)
    let below = try layers.dropFirst().map { try EntrySnapshot.all(below: $0) }

    var setup = MountSetup(
      main: layers[layers.count - 1], point: try folder.folder("mount"), substitutions: layers.dropLast())
    // The root's mode may let all users write.
    setup.options = ["writable", "allow_other", "trust_upper"] + options
    if foldsNames { setup.options.append("case=insensitive") }
    setup.lifetime = 600
    let trees = WriteModelTrees(
      layers: layers, copy: copy, start: TimeSpec.now, foldsNames: foldsNames, comparesLinks: !hasHardLinks)
    let isEqual = try withMount(setup) { mount in
      try WriteModelSteps(run: self, mount: mount, trees: trees, names: names, random: random).compareAll()
    }
    guard isEqual else { return }
    try expectSame(trees, setup)
    // Its spellings are names of their own.
    if !foldsNames, !hasMarkers { try expectSameInOverlay(trees, in: folder) }
    if !hasEdits {
      for (layer, former) in zip(layers.dropFirst(), below) {
        #expect(try EntrySnapshot.all(below: layer) == former, "seed \(seed): \(layer) has changed")
      }
    }
  }

  /// What layers have now.
  func plans(of layers: [ByteString]) throws -> [PlannedLayer] {
    try layers.map { layer in
      var plan = try DiskPlan.read(layer)
      plan.foldsNames = foldsNames
      return plan
    }
  }

  private var hasMarkers: Bool { options.contains("whiteouts=markers") }

  /// Layers in overlayfs's format.
  private func makeLayers(in folder: TemporaryFolder, _ names: [ByteString]) throws -> [ByteString] {
    let plans = StackGenerator.stack(
      seed: seed, count: substitutions + 1, isOverlayOnly: true, scale: .small, names: names,
      limits: StackLimits(hasHardLinks: hasHardLinks), foldsNames: foldsNames)
    return try plans.enumerated().map { index, plan in
      var plan = plan
      for file in plan.files.indices {
        let mode = plan.files[file].metadata.permissions
        plan.files[file].metadata.permissions = OperationGenerator.withoutLockingMark(mode)
      }
      if foldsNames { plan.root.removeCollisions(plan.files, keepsTwins: !hasEdits) }
      plan.root.metadata.permissions = [0o777, 0o1777, 0o755, 0o2777][Int(seed % 4)]
      let root = try folder.folder(ByteString("layer\(index)"))
      try LayerMaker.make(plan, at: root)
      return root
    }
  }

  /// Compares what a new mount shows of the layers with the copy.
  private func expectSame(_ trees: WriteModelTrees, _ setup: MountSetup) throws {
    try withMount(setup) { mount in
      let differences = trees.comparison(with: mount.point).allDifferences()
      #expect(differences.isEmpty, "seed \(seed), a new mount:\n\(Self.lines(differences))")
    }
  }

  /// The same with the kernel's overlayfs.
  private func expectSameInOverlay(_ trees: WriteModelTrees, in folder: TemporaryFolder) throws {
    let (overlay, work) = (try folder.folder("overlay"), try folder.folder("work"))
    let lower = trees.layers.dropFirst().map(\.text).joined(separator: ":")
    let options = "lowerdir=\(lower),upperdir=\(trees.layers[0]),workdir=\(work)"
    try Command("mount", "-t", "overlay", "-o", options, "overlay", overlay.text).check()
    defer { MountTable.abandon(overlay, isFuse: false) }
    let differences = trees.comparison(with: overlay).allDifferences()
    #expect(differences.isEmpty, "seed \(seed), overlayfs:\n\(Self.lines(differences))")
  }

  static func lines(_ differences: [String]) -> String { differences.prefix(12).joined(separator: "\n") }
}

/// The trees of a run.
struct WriteModelTrees {
  /// The topmost takes the changes.
  let layers: [ByteString]
  let copy: ByteString
  let start: TimeSpec
  var foldsNames = false
  /// Whether the copy has the link counts of the layers.
  var comparesLinks = true

  /// The comparison of a tree with the copy.
  func comparison(with seen: ByteString) -> SameTree {
    SameTree(
      expected: copy, seen: seen, start: start, hasTime: { !isMerged($0) }, comparesLinks: comparesLinks)
  }

  /// What a layer has at a path of the mount.
  private func path(_ path: ByteString, in layer: ByteString) -> ByteString {
    layer / (foldsNames ? FoldedPaths(root: layer).resolved(path) : path)
  }

  /// What the layers have at a path, for messages.
  func description(of path: ByteString) -> String {
    let layers = layers.map { layer -> String in
      let path = self.path(path, in: layer)
      guard let status = try? path.status() else { return "none" }
      return status.kind.map {
        "\($0)\(path.isWhiteout ? " 0:0" : "")\(Self.isOpaque(path) ? ", opaque" : "")"
          + (foldsNames ? " \(path.components.last ?? "")" : "")
      } ?? "?"
    }
    return "\(path): \(layers.joined(separator: "; "))"
  }

  private static func isOpaque(_ path: ByteString) -> Bool {
    (try? path.attribute("trusted.overlay.opaque")) != nil || (path / ".wh..wh..opq").exists
  }

  /// Whether a layer below has a directory at a path, or the topmost one has several, so that the mount shows their time if it
  /// is the latest.
  func isMerged(_ path: ByteString) -> Bool {
    if foldsNames {
      return layers.enumerated().contains { FoldedPaths(root: $1).directoryCount(path) > ($0 == 0 ? 1 : 0) }
    }
    return layers.dropFirst().contains { (try? ($0 / path).status().kind) == .directory }
  }

  /// Whether a rename of a directory may fail with EXDEV: the topmost layer has several that are one, or one of a layer below
  /// would get another spelling.
  func mayRefuseRename(_ path: ByteString, to other: ByteString) -> Bool {
    guard foldsNames, (try? self.path(path, in: copy).status().kind) == .directory else { return false }
    let folded = FoldedPaths(root: copy)
    let isRespelling = folded.resolved(path) == folded.resolved(other) && isMerged(path)
    return isRespelling || FoldedPaths(root: layers[0]).directoryCount(path) > 1
  }
}
