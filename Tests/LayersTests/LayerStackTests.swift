import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// A stack of the directories `0` (top) to `count - 1`.
private func stack(_ folder: TemporaryFolder, _ count: Int) throws -> LayerStack {
  LayerStack(
    layers: try (0..<count).map { index in
      try DirectoryLayer(path: folder.folder(ByteString(index)).bytes, index: index, covered: nil)
    })
}

extension ByteString {
  fileprivate init(_ index: Int) { self.init("\(index)") }
}

@Suite struct LayerStackTests {
  @Test(
    "`.`, `..`, empty names and names with a slash are never found", arguments: [".", "..", "a/b", "/", ""])
  func refused(name: String) throws {
    let folder = try TemporaryFolder()
    try (folder.folder("0/a") / "b").write("x")
    let root = try stack(folder, 1).root()
    #expect(try withCName(Array(name.utf8)) { name throws(Errno) in try root.lookup(name) } == nil)
  }

  @Test("the top layer's entry is visible and has that layer's index")
  func order() throws {
    let folder = try TemporaryFolder()
    for (layer, content) in ["top", "middle!", "bottom!!"].enumerated() {
      try (folder.folder(ByteString(layer)) / "file").write(content)
      try (folder / ByteString(layer) / ByteString("only \(layer)")).write("")
    }
    let root = try stack(folder, 3).root()
    guard case .file(let layer, let attributes) = try root.lookup("file") else {
      Issue.record("no file")
      return
    }
    #expect(layer == 0 && attributes.size == 3)
    let names = try root.list()
    #expect(
      Set(names.items.map { String(decoding: names.name(of: $0), as: UTF8.self) }) == [
        "file", "only 0", "only 1", "only 2",
      ])
  }

  @Test("a layer's whiteout hides the entries below, but not its own")
  func whiteoutBesideEntry() throws {
    let folder = try TemporaryFolder()
    try (folder.folder("0/d") / "new").write("")
    try (folder / "0/.wh.d").write("")
    try (folder.folder("1/d") / "old").write("")
    guard case .directory(let merged, _) = try stack(folder, 2).root().lookup("d") else {
      Issue.record("no directory")
      return
    }
    #expect(merged.parts.count == 1)
    #expect(try merged.lookup("old") == nil)
    #expect(try merged.lookup("new") != nil)
  }

  @Test("a whiteout of a marker does not disable the marker, in lookups and listings")
  func whiteoutOfMarker() throws {
    let folder = try TemporaryFolder()
    try (folder.folder("0") / ".wh..wh.d").write("")
    try (folder.folder("1/.wh.d") / "inside").write("")
    try (folder.folder("2/d") / "hidden").write("")
    try (folder / "2/shown").write("")
    let root = try stack(folder, 3).root()
    #expect(try root.lookup("d") == nil)
    let names = try root.list()
    #expect(names.items.map { String(decoding: names.name(of: $0), as: UTF8.self) } == ["shown"])
  }

  @Test("the mount point inside a layer is the covered directory", arguments: [true, false])
  func covered(isPrivate: Bool) throws {
    let folder = try TemporaryFolder()
    let point = try folder.folder("0/deep/point")
    try (point / "beneath").write("")
    let covered = try CoveredMountPoint(path: point.bytes)
    try withCName(point.bytes) { name throws(Errno) in
      guard mount("none", name, "tmpfs", 0, nil) == 0 else { throw .current }
    }
    defer { umount2(point.text, CInt(MNT_DETACH)) }
    try (point / "above").write("")
    let layer = try DirectoryLayer(
      path: (folder / "0").bytes, index: 0, covered: covered, clonesMount: isPrivate)
    #expect(layer.isPrivateClone == isPrivate)
    let stack = LayerStack(layers: [layer])
    let merged = try stack.directory(at: ["deep", "point"].map { Array($0.utf8) })
    #expect(try merged.lookup("above") == nil)
    #expect(try merged.lookup("beneath") != nil)
    let names = try merged.list()
    #expect(names.items.map { names.name(of: $0) } == [Array("beneath".utf8)])
  }

  @Test("a directory that is swapped for a symbolic link does not lead outside")
  func swapping() throws {
    let folder = try TemporaryFolder()
    try (folder.folder("outside") / "secret").write("")
    try (folder.folder("0/d") / "inside").write("")
    let stack = try stack(folder, 1)
    let isOver = Locked(false)
    let (directory, link) = (folder / "0/d", folder / "link")
    try link.makeLink(to: folder / "outside")
    let swapper = try Posix.Thread(name: "swapper") {
      while !isOver.withLock({ $0 }) {
        // The exchange is atomic: `d` is always one or the other.
        try? directory.exchange(with: link)
        try? directory.exchange(with: link)
      }
    }
    var found = 0
    for _ in 0..<20_000 {
      guard let merged = try? stack.directory(at: [Array("d".utf8)]) else { continue }
      #expect(try merged.lookup("secret") == nil)
      if try merged.lookup("inside") != nil { found += 1 }
    }
    isOver.withLock { $0 = true }
    swapper.join()
    #expect(found > 0)
  }

  @Test("a file that replaced another is not opened by the former identity")
  func identity() throws {
    let folder = try TemporaryFolder()
    let file = try folder.folder("0") / "file"
    try file.write("old")
    let layer = try DirectoryLayer(path: (folder / "0").bytes, index: 0, covered: nil)
    let directory = layer.root
    let identity = try layer.root.attributes(of: "file").identity
    #expect(try directory.openFile("file", identity: identity).attributes().size == 3)
    try file.replace("newer")
    #expect(throws: Errno.staleFileHandle) { _ = try directory.openFile("file", identity: identity) }
    try file.remove()
    try file.makeLink(to: "/etc/passwd")
    #expect(throws: Errno.staleFileHandle) { _ = try directory.openFile("file", identity: identity) }
    try file.remove()
    #expect(throws: Errno.noSuchFileOrDirectory) { _ = try directory.openFile("file", identity: identity) }
  }
}
