import Posix
import Synchronization
import TestSupport
import Testing

@testable import Layers

/// Random operations through an `UpperLayer` and on the kernel's overlayfs.
@Suite(.serialized) struct UpperModelTests {
  private static let steps = 400

  @Test("random operations have the same results as on overlayfs", arguments: Seeds.chosen(8))
  func likeOverlayfs(seed: UInt64) throws { try run(seed, usesMarkers: false, onTmpfs: seed % 4 == 3) }

  @Test(
    "random operations have the same results as on overlayfs where whiteouts are marker files",
    arguments: Seeds.chosen(4))
  func likeOverlayfsWithMarkers(seed: UInt64) throws { try run(seed, usesMarkers: true, onTmpfs: false) }

  @Test(
    "random operations have the same results on a file system with fewer calls", arguments: Seeds.chosen(4))
  func likeOverlayfsWithFewerCalls(seed: UInt64) throws {
    try run(seed, usesMarkers: false, onTmpfs: false) { upper in
      upper.hasUnnamedFiles.store(false, ordering: .relaxed)
      upper.renamesLeavingWhiteouts.store(false, ordering: .relaxed)
    }
  }

  private func run(
    _ seed: UInt64, usesMarkers: Bool, onTmpfs: Bool, _ configure: (UpperLayer) -> Void = { _ in }
  ) throws {
    let folder = try TemporaryFolder()
    if onTmpfs { try Command("mount", "-t", "tmpfs", "tmpfs", folder.path.text).check() }
    let layers = try Layers(in: folder, seed: seed)
    if usesMarkers { try (layers.ours / ".wh.absent").write("") }
    let tree = try UpperTree([layers.ours] + layers.lower)
    configure(tree.upper)
    try layers.mount(upper: layers.theirs, at: layers.point)
    try perform(TreeGenerator(seed: ~seed), on: tree, and: layers.point, "seed \(seed)")
    tree.upper.close()
    try Command("umount", layers.point.text).check()
    let shown = try Snapshots.of(tree)
    compare(
      try Snapshots.of(UpperTree([layers.theirs] + layers.lower)), shown, "overlayfs's upper layer as ours")
    if usesMarkers { return }
    try layers.mount(upper: layers.ours, at: layers.point)
    compare(try Snapshots.of(layers.point), shown, "our upper layer as overlayfs's")
    #expect(try (layers.ours).names().filter { $0.hasPrefix(".wh.") } == [])
  }

  private func perform(
    _ generator: TreeGenerator, on tree: UpperTree, and point: ByteString, _ label: String
  ) throws {
    var generator = generator
    let disk = DiskTree(root: point)
    for step in 0..<Self.steps {
      if generator.random.percent(8) { try empty(generator.directory(), of: tree, and: disk) }
      let operation = generator.operation()
      if !isApplicable(operation, at: point) { continue }
      let found = try errorNumber { try tree.apply(operation) }
      let expected = try errorNumber { try disk.apply(operation) }
      #expect(found == expected, "\(label), step \(step): \(operation)")
      if let touched = operation.touched, found == nil {
        let setTime = Operation.setModified(touched, Int64(step))
        #expect(try errorNumber { try tree.apply(setTime) } == nil)
        #expect(try errorNumber { try disk.apply(setTime) } == nil)
      }
      let isEnd = step == Self.steps - 1
      if found != expected || step % 50 == 49 || isEnd {
        let differences = Snapshots.differences(try Snapshots.of(point), try Snapshots.of(tree))
        #expect(differences.isEmpty, "\(label), step \(step): \(operation)")
        if found != expected || !differences.isEmpty { return }
      }
    }
  }

  /// Removes all that is in a directory, so that it can be removed or replaced.
  private func empty(_ path: TreePath, of tree: UpperTree, and disk: DiskTree) throws {
    guard (try? (disk.root / path.text).status())?.kind == .directory else { return }
    for name in try (disk.root / path.text).names() {
      guard let kind = (try? (disk.root / (path + [name]).text).status())?.kind else { continue }
      try empty(path + [name], of: tree, and: disk)
      let removal: Operation = kind == .directory ? .removeDirectory(path + [name]) : .remove(path + [name])
      try tree.apply(removal)
      try disk.apply(removal)
    }
  }

  /// Whether system calls by path reach the entry itself, which is not the case for symbolic links, and do not block.
  private func isApplicable(_ operation: Operation, at point: ByteString) -> Bool {
    let kind: (TreePath) -> FileKind? = { (try? (point / $0.text).status())?.kind }
    return switch operation {
    case .changeMode(let path, _): kind(path) != .symbolicLink
    case .resize(let path, _), .write(let path, _, _): kind(path) == .regular
    default: true
    }
  }

  private func compare(_ expected: TreeSnapshot, _ found: TreeSnapshot, _ label: Comment) {
    #expect(Snapshots.differences(expected, found) == [], label)
  }
}

/// Two layers below, and two equal ones to change.
private struct Layers {
  let lower: [ByteString]
  let ours: ByteString
  let theirs: ByteString
  let point: ByteString
  private let work: ByteString

  init(in folder: TemporaryFolder, seed: UInt64) throws {
    lower = [try folder.folder("1"), try folder.folder("2")]
    (ours, theirs) = (try folder.folder("0"), try folder.folder("theirs"))
    (point, work) = (try folder.folder("point"), folder / "work")
    for (index, layer) in lower.enumerated() {
      var generator = TreeGenerator(seed: seed &* 10 &+ UInt64(index))
      try generator.fill(layer, hides: index == 0)
    }
    for upper in [ours, theirs] {
      var generator = TreeGenerator(seed: seed &* 10 &+ 5)
      // Overlayfs makes no whiteouts where they hide nothing, and does not expect them there.
      try generator.fill(upper, hides: false)
    }
  }

  func mount(upper: ByteString, at point: ByteString) throws {
    work.removeTree()
    try work.makeDirectory()
    let lower = self.lower.map(\.text).joined(separator: ":")
    let options = "redirect_dir=off,metacopy=off,index=off,xino=off"
    try Command(
      "mount", "-t", "overlay", "-o",
      "lowerdir=\(lower),upperdir=\(upper.text),workdir=\(work.text),\(options)", "overlay", point.text
    ).check()
  }
}
