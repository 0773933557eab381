import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// What hides the entries of layers below, and the work folder.
@Suite struct WhiteoutTests {
  @Test("a whiteout is a device, or a marker if the layer has markers", arguments: [false, true])
  func format(usesMarkers: Bool) throws {
    let fixture = try UpperFixture()
    for name in ["below", "copied", "directory/file"] as [ByteString] {
      try (fixture.lower / name).parent.makeDirectories()
      try (fixture.lower / name).write("x")
    }
    if usesMarkers { try (fixture.upper / ".wh.other").write("") }
    try fixture.copyUp("copied")
    try fixture.copyUp("directory", "file")
    let tree = try fixture.tree()
    for path in [["below"], ["copied"], ["directory", "file"]] as [TreePath] {
      try tree.apply(.remove(path))
      #expect(try tree.lookup(path) == nil)
    }
    try tree.apply(.removeDirectory(["directory"]))
    let names = ["below", "copied", "directory"] as [ByteString]
    if usesMarkers {
      #expect(try fixture.upperNames() == (names + ["other"]).map { ".wh." + $0 })
    } else {
      #expect(try fixture.upperNames() == names)
      for name in names { #expect(try (fixture.upper / name).status().kind == .characterDevice) }
    }
  }

  @Test("what no layer below has leaves no whiteout")
  func needless() throws {
    let fixture = try UpperFixture()
    try (fixture.folder.folder("0/d") / "file").write("x")
    try (fixture.upper / "d/hidden").makeWhiteout()
    let tree = try fixture.tree()
    try tree.apply(.remove(["d", "file"]))
    #expect(try (fixture.upper / "d").names() == ["hidden"])
    try tree.apply(.removeDirectory(["d"]))
    #expect(try fixture.upperNames() == [])
  }

  @Test("what a failed layer may have is hidden")
  func failedLayer() throws {
    let fixture = try UpperFixture()
    try (fixture.upper / "file").write("x")
    let tree = try fixture.tree()
    let failure = LayerFailure(layer: 1, error: .ioError)
    let root = MergedDirectory(parts: [tree.upper.layer.root], missing: failure)
    try tree.upper.remove("file", from: root)
    #expect(try (fixture.upper / "file").status().kind == .characterDevice)
  }

  @Test("an error of one directory does not change the format of whiteouts")
  func immutableDirectory() throws {
    let fixture = try UpperFixture()
    for name in ["locked", "other"] as [ByteString] {
      try (fixture.folder.folder("1" / name) / "file").write("x")
      _ = try fixture.folder.folder("0" / name)
    }
    let locked = fixture.upper / "locked"
    try Command("chattr", "+i", locked.text).check()
    defer { _ = try? Command("chattr", "-i", locked.text).run() }
    let tree = try fixture.tree()
    #expect(try errorNumber { try tree.apply(.remove(["locked", "file"])) } == .notPermitted)
    try tree.apply(.remove(["other", "file"]))
    #expect(try (fixture.upper / "other/file").status().kind == .characterDevice)
  }

  @Test("a directory that is not empty stays as it is")
  func notEmpty() throws {
    let fixture = try UpperFixture()
    try (fixture.folder.folder("1/d") / "file").write("x")
    try (fixture.folder.folder("1/d") / "hidden").write("x")
    try (fixture.folder.folder("0/d") / "hidden").makeWhiteout()
    let error = try errorNumber { try fixture.tree().apply(.removeDirectory(["d"])) }
    #expect(error == .directoryNotEmpty)
    #expect(try fixture.tree().lookup(["d", "file"]) != nil)
    #expect(try fixture.tree().lookup(["d", "hidden"]) == nil)
  }

  @Test("a directory that has only whiteouts is replaced", arguments: [false, true], [false, true])
  func replacedDirectory(usesMarkers: Bool, isBelow: Bool) throws {
    let fixture = try UpperFixture()
    for name in ["d", "new"] as [ByteString] { try (fixture.folder.folder("1" / name) / "x").write("x") }
    if usesMarkers { try (fixture.upper / ".wh.other").write("") }
    let tree = try fixture.tree()
    for name in ["d", "new"] as [ByteString] { try tree.apply(.remove([name, "x"])) }
    if isBelow { try tree.apply(.removeDirectory(["new"])) }
    let source: ByteString = isBelow ? "new" : "elsewhere"
    try tree.apply(.makeDirectory([source], mode: 0o755, owner: 0))
    try tree.apply(.make([source, "file"], mode: FileKind.regular.rawValue, device: 0, owner: 0))
    try tree.apply(.rename([source], ["d"], flags: 0))
    #expect(try tree.lookup([source]) == nil && tree.lookup(["d", "x"]) == nil)
    #expect(try tree.lookup(["d", "file"]) != nil)
    try tree.apply(.remove(["d", "file"]))
    try tree.apply(.removeDirectory(["d"]))
    #expect(try tree.lookup(["d"]) == nil)
  }

  @Test("what a killed process left in the work folder is removed, and what another one makes is not")
  func sweep() throws {
    let fixture = try UpperFixture()
    let work = try fixture.folder.folder("0/.wh..wh.bundlefs-work")
    let outside = fixture.lower / "outside"
    try outside.write("kept")
    try (work / "999999999-1").write("half")
    try (work / "999999999-2").makeLink(to: outside)
    try (work / "999999999-3").makeDirectory()
    try (work / "999999999-3/hidden").makeWhiteout()
    // The start of another process is unknown here.
    let other = work / ByteString("\(getppid())-0-1")
    try other.write("other")
    _ = try fixture.tree()
    #expect(try work.names() == [other.lastComponent])
    #expect(outside.exists)
    try other.remove()
    #expect(try fixture.upperNames() == [])
  }

  @Test("the work folder is made again if it is removed")
  func removedWorkFolder() throws {
    let fixture = try UpperFixture()
    let tree = try fixture.tree()
    for name in ["a", "b"] as [ByteString] {
      try (fixture.lower / name).makeLink(to: "x")
      try fixture.copyUp(name)
      #expect(try (fixture.upper / name).linkTarget() == "x")
      try (fixture.upper / ".wh..wh.bundlefs-work").removeDirectory()
    }
    tree.upper.close()
  }

  @Test("a layer on a read-only file system is refused")
  func readOnly() throws {
    let fixture = try UpperFixture(tmpfs: "1m")
    try Command("mount", "-o", "remount,ro", fixture.upper.text).check()
    #expect(try errorNumber { _ = try fixture.tree() } == .readOnlyFileSystem)
  }

  @Test("whiteouts are markers on a file system without devices 0:0")
  func nestedOverlay() throws {
    let fixture = try UpperFixture()
    let folders = try ["inner", "work", "empty"].map { try fixture.folder.folder(ByteString($0)).text }
    let options = "lowerdir=\(folders[2]),upperdir=\(folders[0]),workdir=\(folders[1])"
    try Command("mount", "-t", "overlay", "-o", options, "overlay", fixture.upper.text).check()
    try (fixture.lower / "file").write("x")
    try fixture.folder.folder("1/d").setMode(0o700)
    let tree = try fixture.tree()
    try tree.apply(.rename(["file"], ["moved"], flags: 0))
    try tree.apply(.removeDirectory(["d"]))
    try tree.apply(.makeDirectory(["d"], mode: 0o755, owner: 0))
    try tree.apply(.rename(["d"], ["e"], flags: 0))
    #expect(try tree.lookup(["file"]) == nil && tree.lookup(["d"]) == nil)
    #expect(try tree.lookup(["moved"]) != nil && tree.lookup(["e"]) != nil)
    #expect(try Set(fixture.upperNames()) == [".wh.d", ".wh.file", "e", "moved"])
  }
}
