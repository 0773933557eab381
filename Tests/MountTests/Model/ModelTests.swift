import Posix
import TestSupport
import Testing

/// Stacks made up at random, mounted and compared with the model.
extension MountTests {
  @Suite struct ModelTests {
    /// 100 stacks of two layers, 100 of three; every other one is in overlayfs's format only.
    static let seeds = Seeds.chosen(200)

    @Test("the mount is what the model says", .timeLimit(.minutes(2)), arguments: seeds)
    func bundlefsAgrees(seed: UInt64) throws {
      let stack = GeneratedStack(seed: seed)
      let folder = try TemporaryFolder()
      let roots = try stack.make(in: folder, onOwnFileSystems: seed % 8 >= 6)
      let setup = MountSetup(
        main: roots[roots.count - 1], point: try folder.folder("mount"), substitutions: roots.dropLast())
      try withMount(setup) { mount in
        let differences = TreeComparison.differences(stack.layers, at: mount.point, judge: .bundlefs)
        #expect(differences.isEmpty, stack.report(differences))
      }
    }

    @Test(
      "the kernel's overlayfs is what the model says", .timeLimit(.minutes(1)),
      arguments: seeds.filter(GeneratedStack.isOverlayOnly))
    func overlayfsAgrees(seed: UInt64) throws {
      let stack = GeneratedStack(seed: seed)
      let folder = try TemporaryFolder()
      let roots = try stack.make(in: folder, onOwnFileSystems: false)
      let point = try folder.folder("overlay")
      let layers = roots.map(\.text).joined(separator: ":")
      try Command("mount", "-t", "overlay", "-o", "ro,lowerdir=\(layers)", "overlay", point.text).check()
      let differences = TreeComparison.differences(stack.layers, at: point, judge: .overlayfs)
      #expect(differences.isEmpty, stack.report(differences))
    }
  }
}

/// The stack of a seed.
struct GeneratedStack {
  let seed: UInt64
  let layers: [PlannedLayer]

  init(seed: UInt64) {
    self.seed = seed
    layers = StackGenerator.stack(
      seed: seed, count: seed % 200 < 100 ? 2 : 3, isOverlayOnly: Self.isOverlayOnly(seed))
  }

  static func isOverlayOnly(_ seed: UInt64) -> Bool { seed % 2 == 0 }

  /// Makes the layers real.
  /// - Parameter onOwnFileSystems: each on a tmpfs of its own, where the layers' inode numbers are the same.
  /// - Returns: their roots, the strongest first.
  func make(in folder: TemporaryFolder, onOwnFileSystems: Bool) throws -> [ByteString] {
    try layers.enumerated().map { index, layer in
      let root = try folder.folder(ByteString("layer\(index)"))
      if onOwnFileSystems && OwnFileSystem.isFit {
        try Command("mount", "-t", "tmpfs", "tmpfs", root.text).check()
      }
      try LayerMaker.make(layer, at: root)
      return root
    }
  }

  /// What to tell when something differs.
  func report(_ differences: [String]) -> Comment {
    """
    seed \(seed) (run it alone with BUNDLEFS_SEED=\(seed)): \(differences.count) differences
    \(differences.prefix(12).joined(separator: "\n"))
    """
  }
}

/// Whether a tmpfs keeps `user.` attributes here: it does since Linux 6.6.
enum OwnFileSystem {
  static let isFit: Bool = {
    guard let folder = try? TemporaryFolder(),
      (try? Command("mount", "-t", "tmpfs", "tmpfs", folder.path.text).check()) != nil
    else { return false }
    return (try? folder.path.setAttribute("user.probe", [1])) != nil
  }()
}
