import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// The two halves of applying a layer, with changes between them.
@Suite struct ApplyRunTests {
  private struct Layers {
    let folder: TemporaryFolder
    let (top, main): (ByteString, ByteString)
    let (source, target): (UpperLayer, UpperLayer)

    init() throws {
      folder = try TemporaryFolder()
      (top, main) = (try folder.folder("top"), try folder.folder("main"))
      source = try Self.open(top, 0)
      target = try Self.open(main, 1)
    }

    private static func open(_ path: ByteString, _ index: Int) throws -> UpperLayer {
      try UpperLayer(
        DirectoryLayer(path: path.bytes, index: index, covered: nil, clonesMount: false, isWritable: true))
    }

    func run() throws -> ApplyRun {
      let stack = LayerStack(layers: [source.layer, target.layer])
      var planner = try ApplyPlanner(
        stack, target: 1, reserved: [], mergesTables: false, hidden: nil, progress: { _ in })
      #expect(try planner.add([]))
      return ApplyRun(planner.plan, from: source, to: target, hasBelow: false, progress: { _, _ in })
    }

    func close() {
      source.close()
      target.close()
    }
  }

  @Test("what a program changes meanwhile stays in the top layer")
  func changedMeanwhile() throws {
    let layers = try Layers()
    for name in ["written", "replaced", "removed", "folder/kept", "same"] as [ByteString] {
      try (layers.top / name).parent.makeDirectories()
      try (layers.top / name).write("former")
    }
    var run = try layers.run()
    try run.write()
    try (layers.top / "written").write("later")
    try (layers.top / "replaced").replace("later")
    try (layers.top / "removed").remove()
    try (layers.top / "folder/new").write("later")
    run.empty()
    #expect(run.faults.map(\.error) == [.staleFileHandle, .staleFileHandle])
    layers.close()
    #expect(try layers.top.names() == ["folder", "replaced", "written"])
    #expect(try (layers.top / "folder").names() == ["new"])
    #expect(try (layers.top / "replaced").readText() == "later")
    #expect(try (layers.top / "written").readText() == "later")
    #expect(try layers.main.names() == ["folder", "removed", "replaced", "same", "written"])
  }

  @Test("an opaque folder of which something fails keeps hiding the target's")
  func failureInOpaque() throws {
    let layers = try Layers()
    for name in ["folder/a", "folder/b"] as [ByteString] {
      try (layers.top / name).parent.makeDirectories()
      try (layers.top / name).write("top's")
    }
    try (layers.top / "folder/.wh..wh..opq").write("")
    try (layers.main / "folder").makeDirectory()
    try (layers.main / "folder/hidden").write("main's")
    var run = try layers.run()
    try (layers.top / "folder/a").replace("another")
    try run.write()
    run.empty()
    #expect(run.faults.map(\.error) == [.staleFileHandle])
    layers.close()
    #expect(try (layers.top / "folder").names() == [".wh..wh..opq", "a", "b"])
    var again = try layers.run()
    try again.write()
    again.empty()
    layers.close()
    #expect(try layers.top.names() == [])
    #expect(try (layers.main / "folder").names() == ["a", "b"])
  }

  @Test("what an opaque folder hides goes from the folders in it, too")
  func foldersInOpaque() throws {
    let layers = try Layers()
    for root in [layers.top, layers.main] { try (root / "folder/inner/deep").makeDirectories() }
    try (layers.top / "folder/.wh..wh..opq").write("")
    try (layers.top / "folder/inner/deep/new").write("top's")
    for name in ["hidden", "inner/hidden", "inner/deep/hidden"] as [ByteString] {
      try (layers.main / "folder" / name).write("main's")
    }
    var run = try layers.run()
    try run.write()
    run.empty()
    #expect(run.faults.isEmpty)
    layers.close()
    #expect(try layers.top.names() == [])
    #expect(try (layers.main / "folder").names() == ["inner"])
    #expect(try (layers.main / "folder/inner").names() == ["deep"])
    #expect(try (layers.main / "folder/inner/deep").names() == ["new"])
  }

  @Test("what came after the plan is not removed from the target")
  func plannedBefore() throws {
    let layers = try Layers()
    for name in ["reverted", "grown", "gone"] as [ByteString] {
      try (layers.top / (".wh." + name)).write("")
      if name == "grown" {
        try (layers.main / name).makeDirectory()
      } else {
        try (layers.main / name).write("")
      }
    }
    try (layers.top / "added").write("file")
    var run = try layers.run()
    try (layers.top / ".wh.reverted").remove()
    try (layers.main / "grown/new").write("later")
    try (layers.main / "added").makeDirectory()
    try (layers.main / "added/new").write("later")
    try run.write()
    run.empty()
    #expect(run.faults.count == 3 && run.faults.allSatisfy { $0.error == .staleFileHandle })
    layers.close()
    #expect(try layers.main.names() == ["added", "grown", "reverted"])
    #expect(try (layers.main / "grown").names() == ["new"])
    #expect(try (layers.main / "added").names() == ["new"])
    #expect(try layers.top.names() == [".wh.grown", "added"])
  }

  @Test("what the target has already is not written again")
  func repeated() throws {
    let layers = try Layers()
    try (layers.top / "file").write("content")
    try (layers.top / "other").makeHardLink(of: layers.top / "file")
    var run = try layers.run()
    try run.write()
    let first = try (layers.main / "file").status()
    var again = try layers.run()
    try again.write()
    #expect(try (layers.main / "file").status().inode == first.inode)
    #expect(try (layers.main / "other").status().inode == first.inode)
    again.empty()
    layers.close()
    #expect(try layers.top.names() == [])
  }
}
