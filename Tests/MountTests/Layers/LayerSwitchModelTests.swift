import Posix
import TestSupport
import Testing

/// Random changes of the stack, between random changes of the layers, are compared with the model.
extension MountTests {
  @Suite(.enabled(if: Mount.hasControl)) struct LayerSwitchModelTests {
    @Test(
      "after each change of the stack the mount matches the model", .timeLimit(.minutes(30)),
      arguments: LayerSwitchRun.seeds)
    func matches(seed: UInt64) throws { try LayerSwitchRun(seed: seed).run() }
  }
}

/// A layer that is laid at a folder of the mount.
final class LaidCandidate {
  let root: ByteString
  let name: ByteString
  private(set) var laying: Laying

  init(_ root: ByteString, _ laying: Laying) {
    (self.root, self.laying) = (root, laying)
    name = laying.name(of: root)
  }

  /// The mount opens it: the folders above keep the present attributes of its root.
  func open() throws {
    if root.text.hasSuffix(".zip") { return }
    laying = Laying(place: laying.place, root: try DiskPlan.read(root).root.metadata)
  }
}

/// Changes of a mount's stack and of its layers, all determined by a seed.
struct LayerSwitchRun {
  /// The number of changes in one mount.
  private static let stepsPerSeed = 40

  static var seeds: [UInt64] {
    Seeds.chosen(max(1, TestLength.steps(full: 480, brief: 160) / stepsPerSeed))
  }

  let seed: UInt64

  /// Every third run has archives too, every other one is in overlayfs's format; in every fourth case does not count.
  private var hasArchives: Bool { seed % 3 == 2 }
  private var isOverlayOnly: Bool { seed % 2 == 0 }
  private var foldsNames: Bool { seed % 4 == 3 }
  /// In every other run that is not compared with overlayfs, layers are laid at folders, too, unless case does not count.
  private var laysLayers: Bool { seed % 4 == 1 }
  private var options: [ByteString] { foldsNames ? ["case=insensitive"] : [] }

  func run() throws {
    let folder = try TemporaryFolder()
    var random = SplitMix64(seed: seed)
    let candidates = try makeLayers(in: folder)
    let main = candidates.folders[0]
    var stack = Array(candidates.folders[1...2])
    var setup = MountSetup(main: main, point: try folder.folder("mount"), substitutions: stack)
    setup.lifetime = 600
    setup.options = options
    let names = candidates.names
    var log: [String] = ["begin \(stack)"]
    try withMount(setup) { mount in
      let reader = try Child(Command("sh", "-c", Self.readAll, mount.point.text))
      defer { try? reader.kill() }
      for _ in 0..<Self.stepsPerSeed {
        for _ in 0..<random.number(0...3) {
          var edits = LayerEdits(
            candidates.folders, names: names, random: SplitMix64(seed: random.next()))
          log.append(try edits.step())
        }
        let former = stack
        stack = Self.changed(stack, among: candidates.all, &random)
        log.append("layers \(stack.map(\.description))")
        // One that was laid already keeps what the mount has opened.
        for layer in stack where !former.contains(layer) {
          try candidates.layings[layer]?.open()
        }
        try mount.setLayers(stack)
        let differences = try self.differences(stack + [main], candidates, mount, in: folder)
        if differences.isEmpty { continue }
        Issue.record(
          """
          seed \(seed): \(differences.count) differences
          \(differences.prefix(12).joined(separator: "\n"))
          \(log.suffix(12).joined(separator: "\n"))
          """)
        return
      }
      #expect(reader.status() == nil, "the reader has ended: \(reader.errorText)")
    }
  }

  /// Reads all files again and again; what goes meanwhile is no error.
  private static let readAll =
    "while :; do find \"$0\" -type f -exec cat {} + > /dev/null 2>&1; sleep 0.01; done"

  private struct Candidates {
    var names: [ByteString] = []
    var folders: [ByteString] = []
    var archives: [ByteString] = []
    /// By the names with which `substitution` takes them.
    var layings: [ByteString: LaidCandidate] = [:]

    /// All but MAIN.
    var all: [ByteString] { folders.dropFirst() + archives + layings.keys.sorted() }
  }

  private func makeLayers(in folder: TemporaryFolder) throws -> Candidates {
    var candidates = Candidates()
    var random = SplitMix64(seed: seed ^ 0x1a7e)
    candidates.names =
      foldsNames ? FoldedNames.choose(using: &random) : NamePool.choose(using: &random)
    let plans = StackGenerator.stack(
      seed: seed, count: 7, isOverlayOnly: isOverlayOnly, scale: .small, names: candidates.names)
    for (index, plan) in plans.enumerated() {
      var plan = plan
      // The judge of stacks with archives reads all files.
      for file in plan.files.indices where hasArchives && plan.files[file].form.kind != .symbolicLink {
        if plan.files[file].form.kind != .regular { plan.files[file].form = .regular(content: []) }
      }
      let root = try folder.folder(ByteString("layer\(index)"))
      try LayerMaker.make(plan, at: root)
      candidates.folders.append(root)
    }
    if hasArchives {
      try ArchiveGenerator.make(seed: seed, in: folder.path)
      candidates.archives = [folder / "a1.zip", folder / "a2.zip", folder / "b1.zip"]
    }
    if !laysLayers { return candidates }
    // The judge of archives opens folders later, when their roots can have other times.
    for root in hasArchives ? candidates.archives : Array(candidates.folders[3...]) {
      let metadata = try DiskPlan.read(candidates.folders[0]).root.metadata
      let laid = LaidCandidate(root, Laying.choose(candidates.names, over: metadata, &random))
      candidates.layings[laid.name] = laid
    }
    return candidates
  }

  /// The folder or archive that is laid.
  private static func root(_ layer: ByteString) -> Substring {
    layer.text.firstRange(of: "@/").map { layer.text[..<$0.lowerBound] } ?? layer.text[...]
  }

  /// A stack of at most five substitutions, one change away.
  private static func changed(
    _ stack: [ByteString], among candidates: [ByteString], _ random: inout SplitMix64
  ) -> [ByteString] {
    var stack = stack
    // The model takes the files of a folder that is laid twice for two.
    let roots = Set(stack.map(Self.root))
    let others = candidates.filter { !roots.contains(root($0)) }
    let plain = candidates.filter { !$0.text.contains("@/") }
    switch random.number(0...9) {
    case 0..<4 where stack.count < 5:
      stack.insert(random.pick(others), at: random.number(0...stack.count))
    case 4..<7 where !stack.isEmpty: stack.remove(at: random.number(0...stack.count - 1))
    case 7..<9 where stack.count > 1:
      let layer = stack.remove(at: random.number(0...stack.count - 1))
      stack.insert(layer, at: random.number(0...stack.count))
    default: stack = (0..<random.number(0...3)).map { _ in random.pick(plain) }
    }
    return stack
  }

  private func differences(
    _ layers: [ByteString], _ candidates: Candidates, _ mount: Mount, in folder: TemporaryFolder
  ) throws -> [String] {
    if layers.contains(where: { $0.text.contains(".zip") }) {
      // A new mount is the judge, since an archive has other metadata than a folder.
      var setup = MountSetup(
        main: layers[layers.count - 1], point: try folder.folder(ByteString("twin\(Clock.now)")),
        substitutions: layers.dropLast())
      setup.options = options
      let expected = try withMount(setup) { try TreeDigest.of($0.point) }
      let seen = try TreeDigest.of(mount.point)
      return seen == expected ? [] : ["\(TreeDigest.difference(seen, expected))"]
    }
    let plans = try layers.map { layer in
      let laid = candidates.layings[layer]
      var plan = try DiskPlan.read(laid?.root ?? layer)
      if let laid { plan = plan.laid(laid.laying) }
      plan.foldsNames = foldsNames
      return plan
    }
    var found = TreeComparison.differences(plans, at: mount.point, implementation: .bundlefs)
    if isOverlayOnly, Set(layers).count == layers.count {
      found += try overlayDifferences(layers, plans, in: folder)
    }
    return found
  }

  /// What the kernel's overlayfs shows beside the model.
  private func overlayDifferences(
    _ layers: [ByteString], _ plans: [PlannedLayer], in folder: TemporaryFolder
  ) throws -> [String] {
    let point = try folder.folder(ByteString("overlay\(Clock.now)"))
    // It takes two layers at least.
    if layers.count < 2 { return [] }
    let lower = layers.map(\.text).joined(separator: ":")
    try Command("mount", "-t", "overlay", "-o", "lowerdir=\(lower)", "overlay", point.text).check()
    defer { MountTable.abandon(point, isFuse: false) }
    return TreeComparison.differences(plans, at: point, implementation: .overlayfs).map { "overlayfs: \($0)" }
  }
}
