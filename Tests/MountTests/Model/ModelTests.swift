import Posix
import TestSupport
import Testing

/// Random stacks are mounted and compared with the model.
extension MountTests {
  @Suite struct ModelTests {
    /// 100 stacks of two layers and 100 of three; every other one uses only overlayfs's format.
    static let seeds = Seeds.chosen(TestLength.of(full: 200, brief: 60))

    @Test("the mount matches the model", .timeLimit(.minutes(2)), arguments: seeds)
    func bundlefs(seed: UInt64) throws {
      let stack = GeneratedStack(seed: seed)
      let folder = try TemporaryFolder()
      let roots = try stack.make(in: folder, onOwnFileSystems: seed % 8 >= 6)
      let setup = MountSetup(
        main: roots[roots.count - 1], point: try folder.folder("mount"), substitutions: roots.dropLast())
      try withMount(setup) { mount in
        let differences = TreeComparison.differences(stack.layers, at: mount.point, implementation: .bundlefs)
        #expect(differences.isEmpty, stack.report(differences))
      }
    }

    @Test(
      "the kernel's overlayfs matches the model", .timeLimit(.minutes(1)),
      arguments: seeds.filter(GeneratedStack.isOverlayOnly))
    func overlayfs(seed: UInt64) throws {
      let stack = GeneratedStack(seed: seed)
      let folder = try TemporaryFolder()
      let roots = try stack.make(in: folder, onOwnFileSystems: false)
      let point = try folder.folder("overlay")
      let layers = roots.map(\.text).joined(separator: ":")
      try Command("mount", "-t", "overlay", "-o", "ro,lowerdir=\(layers)", "overlay", point.text).check()
      let differences = TreeComparison.differences(stack.layers, at: point, implementation: .overlayfs)
      #expect(differences.isEmpty, stack.report(differences))
    }
  }
}

/// A stack determined by a seed.
struct GeneratedStack {
  let seed: UInt64
  let layers: [PlannedLayer]

  init(seed: UInt64) {
    self.seed = seed
    layers = StackGenerator.stack(
      seed: seed, count: seed % 200 < 100 ? 2 : 3, isOverlayOnly: Self.isOverlayOnly(seed))
  }

  static func isOverlayOnly(_ seed: UInt64) -> Bool { seed % 2 == 0 }

  /// Makes the layers on disk.
  /// - Parameter onOwnFileSystems: whether each layer has its own tmpfs, so that inode numbers collide.
  /// - Returns: the roots, topmost first.
  func make(in folder: TemporaryFolder, onOwnFileSystems: Bool) throws -> [ByteString] {
    try layers.enumerated().map { index, layer in
      let root = try folder.folder(ByteString("layer\(index)"))
      if onOwnFileSystems && TmpfsSupport.keepsUserAttributes {
        try Command("mount", "-t", "tmpfs", "tmpfs", root.text).check()
      }
      try LayerMaker.make(layer, at: root)
      return root
    }
  }

  /// Mounts the layers, and runs the body with the mount and the layers' roots, topmost first.
  func mounted(_ body: (Mount, [ByteString]) throws -> Void) throws {
    let folder = try TemporaryFolder()
    let roots = try make(in: folder, onOwnFileSystems: false)
    let setup = MountSetup(
      main: roots[roots.count - 1], point: try folder.folder("mount"), substitutions: roots.dropLast())
    try withMount(setup) { try body($0, roots) }
  }

  /// The failure message.
  func report(_ differences: [String]) -> Comment {
    """
    seed \(seed) (reproduce with BUNDLEFS_SEED=\(seed)): \(differences.count) differences
    \(differences.prefix(12).joined(separator: "\n"))
    """
  }
}

/// Features of the kernel's tmpfs.
enum TmpfsSupport {
  /// Whether it supports `user.` attributes, as since Linux 6.6.
  static let keepsUserAttributes: Bool = {
    guard let folder = try? TemporaryFolder(),
      (try? Command("mount", "-t", "tmpfs", "tmpfs", folder.path.text).check()) != nil
    else { return false }
    return (try? folder.path.setAttribute("user.probe", [1])) != nil
  }()
}
