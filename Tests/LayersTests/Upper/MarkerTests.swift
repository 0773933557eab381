import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// Markers, and the entries that take the names which they hide.
@Suite struct MarkerTests {
  /// What gives `f` to an entry again after it was removed.
  private static let takings: [String: [TestOperation]] = [
    "make": [.make(["f"], mode: FileKind.regular.rawValue | 0o644, device: 0, owner: 0)],
    "mkfifo": [.make(["f"], mode: FileKind.fifo.rawValue | 0o644, device: 0, owner: 0)],
    "mkdir": [.makeDirectory(["f"], mode: 0o755, owner: 0)],
    "ln -s": [.makeSymbolicLink(["f"], owner: 0)],
    "ln": [.link(["own"], ["f"])],
    "mv": [.rename(["own"], ["f"], flags: 0)],
    "mv a folder": [.rename(["folder"], ["f"], flags: 0)],
    "mv without replacing": [.rename(["own"], ["f"], flags: RenameFlags.noReplace.rawValue)],
    "mv away and back": [
      .rename(["own"], ["f"], flags: 0), .rename(["f"], ["away"], flags: 0),
      .rename(["away"], ["f"], flags: 0),
    ],
  ]

  @Test(
    "a marker is removed when an entry takes its name", arguments: takings.keys.sorted(), [false, true])
  func taken(how: String, usesMarkers: Bool) throws {
    let fixture = try UpperFixture()
    try (fixture.lower / "f").write("below")
    try (fixture.upper / "own").write("own")
    try (fixture.upper / "folder").makeDirectory()
    // Without it, devices are used, and this marker is another program's.
    if usesMarkers { try (fixture.upper / ".wh.seed").write("") }
    let tree = try fixture.tree()
    if usesMarkers {
      try tree.apply(.remove(["f"]))
      #expect((fixture.upper / ".wh.f").exists)
    } else {
      try (fixture.upper / ".wh.f").write("")
    }
    for operation in try #require(Self.takings[how]) { try tree.apply(operation) }
    #expect(!(fixture.upper / ".wh.f").exists)
    let entry = try #require(try tree.lookup(["f"]))
    switch entry {
    case .file(let layer, _): #expect(layer == 0)
    case .directory(let directory, _): #expect(directory.parts.map(\.layer) == [0])
    }
  }

  @Test("exchanged entries have no markers beside them")
  func exchanged() throws {
    let fixture = try UpperFixture()
    for name in ["a", "b"] as [ByteString] {
      try (fixture.lower / name).write("below")
      try (fixture.upper / name).write("own \(name)")
      try (fixture.upper / (".wh." + name)).write("")
    }
    try fixture.tree().apply(.rename(["a"], ["b"], flags: RenameFlags.exchange.rawValue))
    #expect(try fixture.upperNames() == ["a", "b"])
    #expect(try (fixture.upper / "a").readText() == "own b")
  }

  @Test(
    "at each moment there is a marker, an entry, or both while a name is removed and taken again",
    .timeLimit(.minutes(2)))
  func neverShown() throws {
    let fixture = try UpperFixture()
    try (fixture.lower / "f").write("below")
    try (fixture.upper / "f").write("own")
    try (fixture.upper / ".wh.seed").write("")
    let tree = try fixture.tree()
    let upper = fixture.upper
    let (isDone, bare, looks) = (Counter(), Counter(), Counter())
    let thread = try Thread(name: "reader") {
      while isDone.count == 0 {
        // The kernel lists a small directory in one step.
        guard let names = try? upper.names() else { continue }
        if !names.contains("f"), !names.contains(".wh.f") { bare.add(1) }
        looks.add(1)
      }
    }
    for _ in 0..<2000 {
      try tree.apply(.remove(["f"]))
      try tree.apply(.make(["f"], mode: FileKind.regular.rawValue | 0o644, device: 0, owner: 0))
    }
    isDone.add(1)
    thread.join()
    #expect(bare.count == 0 && looks.count > 100)
    #expect(try fixture.upperNames() == [".wh.seed", "f"])
  }

  @Test("what a process left undone that died beside a marker is completed")
  func completed() throws {
    let fixture = try UpperFixture()
    for name in ["f", "gone"] as [ByteString] {
      try (fixture.lower / name).write("below")
      try (fixture.upper / (".wh." + name)).write("")
    }
    try (fixture.upper / "f").write("own")
    let tree = try fixture.tree()
    let root = try tree.stack.root()
    tree.upper.completeTaking("f", in: root)
    tree.upper.completeTaking("gone", in: root)
    #expect(try fixture.upperNames() == [".wh.gone", "f"])
  }

  @Test(
    "the format that is wanted is used, whatever the layer has",
    arguments: [WhiteoutFormat.devices, .markers])
  func format(format: WhiteoutFormat) throws {
    let fixture = try UpperFixture()
    try (fixture.lower / "f").write("below")
    try (fixture.lower / "d").makeDirectory()
    if format == .devices { try (fixture.upper / ".wh.seed").write("") }
    let layers = try [fixture.upper, fixture.lower].enumerated().map { index, path in
      try DirectoryLayer(path: path.bytes, index: index, covered: nil, isWritable: index == 0)
    }
    let upper = try UpperLayer(layers[0], whiteouts: format)
    let root = try LayerStack(layers: layers).root()
    try upper.remove("f", from: root)
    try upper.removeDirectory("d", from: root)
    try upper.makeDirectory("d", in: root, mode: 0o755, EntryOwner(user: 0, group: 0, umask: 0))
    let isDevice = (try? (fixture.upper / "f").status())?.kind == .characterDevice
    #expect(isDevice == (format == .devices))
    #expect((fixture.upper / ".wh.f").exists == (format == .markers))
    #expect((fixture.upper / "d/.wh..wh..opq").exists == (format == .markers))
    upper.close()
  }

  @Test("devices are refused where there are none, instead of markers")
  func unavailableDevices() throws {
    let fixture = try UpperFixture()
    let folders = try ["inner", "work", "empty"].map { try fixture.folder.folder(ByteString($0)).text }
    let options = "lowerdir=\(folders[2]),upperdir=\(folders[0]),workdir=\(folders[1])"
    try Command("mount", "-t", "overlay", "-o", options, "overlay", fixture.upper.text).check()
    let layer = try DirectoryLayer(path: fixture.upper.bytes, index: 0, covered: nil, isWritable: true)
    #expect(throws: Errno.notSupported) { try UpperLayer(layer, for: .mount, whiteouts: .devices) }
    try (fixture.lower / "f").write("below")
    let lower = try DirectoryLayer(path: fixture.lower.bytes, index: 1, covered: nil)
    let upper = try UpperLayer(layer, whiteouts: .devices)
    let root = try LayerStack(layers: [layer, lower]).root()
    #expect(try errorNumber { try upper.remove("f", from: root) } != nil)
    #expect(!(fixture.upper / ".wh.f").exists)
    upper.close()
  }
}

private typealias TestOperation = Operation
